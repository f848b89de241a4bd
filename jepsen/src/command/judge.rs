//! Verdict on a stored run: all checkers, and their results in the directory of the run.

use std::path::Path;

use anyhow::Result;

use super::Outcome;
use crate::checker::{self, Record, Verdict};
use crate::store;

/// Checks a stored run, writes the report beside it, and prints a summary.
///
/// # Errors
/// If the directory can't be read or written.
pub(super) fn judge(dir: &Path) -> Result<Outcome> {
    let record = store::read(dir)?;
    let verdicts = verdicts(&record);
    let mut outcome = Outcome::Held;
    for (id, verdict) in &verdicts {
        println!("{id:<4} {:>6} violations, {:>9} checked", verdict.violations, verdict.checked);
        for anomaly in verdict.anomalies.iter().take(5) {
            println!("       {} {:?}", anomaly.message, anomaly.operations);
        }
        if !verdict.holds() {
            outcome = Outcome::Violated;
        }
    }
    if !record.settings.is_complete && outcome == Outcome::Held {
        outcome = Outcome::Undecided;
    }
    Ok(outcome)
}

/// Verdict of each checker.
fn verdicts(record: &Record) -> Vec<(&'static str, Verdict)> {
    checker::all().iter().map(|checker| (checker.id(), checker.check(record))).collect()
}
