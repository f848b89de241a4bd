//! Stored inputs, run through their targets, and the generation of the inputs that are real encodings.
//!
//! `UPDATE=1` writes the generated inputs again. Findings of the fuzzer are only added.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "what can't be here is a failed test"
)]

mod bytes;
mod words;

use std::fs;
use std::path::PathBuf;

/// Largest input. Small inputs keep a checkout small, and the fuzzer changes relevant bytes more often.
const SEED_BYTES_MAX: u64 = 64 << 10;

/// Target, name of the file, and content of the file.
type Seed = (&'static str, String, Vec<u8>);

fn corpus(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target)
}

#[test]
fn no_target_complains_of_what_was_kept() {
    let made: Vec<Seed> = words::all().into_iter().chain(bytes::all()).collect();
    if std::env::var_os("UPDATE").is_some() {
        for (target, name, content) in &made {
            fs::create_dir_all(corpus(target)).unwrap();
            fs::write(corpus(target).join(name), content).unwrap();
        }
    }
    for (target, name, content) in &made {
        let kept = fs::read(corpus(target).join(name)).unwrap_or_default();
        assert!(kept == *content, "corpus/{target}/{name} isn't what is written now: UPDATE=1");
    }
    for (target, _) in fuzz::TARGETS {
        let mut paths: Vec<PathBuf> =
            fs::read_dir(corpus(target)).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        assert!(!paths.is_empty(), "{target} has no seeds");
        for path in paths {
            assert!(fs::metadata(&path).unwrap().len() <= SEED_BYTES_MAX, "{} is too long", path.display());
            println!("{}", path.display());
            fuzz::run(target, &fs::read(&path).unwrap());
        }
    }
}
