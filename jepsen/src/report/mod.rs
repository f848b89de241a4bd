//! Report of stored runs: `results.json` and one self-contained page.
