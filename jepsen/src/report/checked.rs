//! Checked invariant: a checker with its verdict.

use serde::{Deserialize, Serialize};

use crate::checker::{self, Record, Verdict};

/// Verdict of one checker with its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// Number of the invariant, such as `I7`.
    pub id: String,
    /// Name of the invariant.
    pub name: String,
    /// The invariant in one sentence.
    pub about: String,
    /// Numbers of the promises that the invariant covers.
    pub promises: Vec<u8>,
    /// Verdict.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// Runs all checkers on a run.
#[must_use]
pub fn run_checkers(record: &Record) -> Vec<Checked> {
    checker::all().iter().map(|checker| checked(checker.as_ref(), record)).collect()
}

fn checked(checker: &dyn checker::Checker, record: &Record) -> Checked {
    Checked {
        id: checker.id().to_owned(),
        name: checker.name().to_owned(),
        about: checker.about().to_owned(),
        promises: checker.promises().to_vec(),
        verdict: checker.check(record),
    }
}
