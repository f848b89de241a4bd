//! Verdict on a stored run: all checkers, and their results in the directory of the run.

use std::path::Path;

use anyhow::{Context as _, Result};

use super::Outcome;
use crate::report::{self, RESULTS, Validity};
use crate::store;

/// Name of the file with the page.
const PAGE: &str = "report.html";

/// Checks a stored run, writes the report beside it, and prints a summary.
///
/// # Errors
/// If the directory can't be read or written.
pub(super) fn judge(dir: &Path) -> Result<Outcome> {
    let record = store::read(dir)?;
    let checked = report::run_checkers(&record);
    let settings = &record.settings;
    let mut results = report::results(&record, checked).with_failures(&settings.failures);
    if !settings.is_complete && settings.failures.is_empty() {
        // An interrupted run has no journal, without which checkers may err.
        results.valid = Validity::Unknown;
    }
    let write = |name: &str, bytes: &[u8]| {
        let path = dir.join(name);
        std::fs::write(&path, bytes).with_context(|| path.display().to_string())
    };
    write(RESULTS, &serde_json::to_vec_pretty(&results)?)?;
    write(PAGE, report::page(&record, &results).as_bytes())?;
    println!("{}", report::text(&results));
    Ok(outcome(results.valid))
}

/// Outcome of a run with this validity.
pub(super) fn outcome(valid: Validity) -> Outcome {
    match valid {
        Validity::Yes => Outcome::Held,
        Validity::Unknown => Outcome::Undecided,
        Validity::No => Outcome::Violated,
    }
}
