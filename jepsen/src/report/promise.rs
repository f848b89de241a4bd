//! Promises of ipamd (DESIGN, section 3) with the verdict of their checkers.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::checked::Checked;

/// Names of the promises, number 1 first.
const NAMES: [&str; 14] = [
    "Uniqueness",
    "Durability",
    "Exactly once",
    "Atomicity",
    "No late grant",
    "No reclaim of live allocations",
    "Linearizable reads",
    "Determinism",
    "Conservation",
    "Restore safety",
    "Clear refusal of invalid input",
    "Outage isolation",
    "Complete audit trail",
    "No unauthorised access",
];

/// Verdict on a promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PromiseVerdict {
    /// A valid run verified it without a violation.
    Kept,
    /// No violation, but the run is too weak, or the checkers saw nothing.
    Unproven,
    /// No checker of a live run covers the promise.
    Uncovered,
    /// A checker found a violation.
    Broken,
}

impl fmt::Display for PromiseVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Kept => "kept",
            Self::Unproven => "unproven",
            Self::Uncovered => "not covered",
            Self::Broken => "BROKEN",
        })
    }
}

/// Promise with its verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromiseResult {
    /// Number of the promise.
    pub number: u8,
    /// Name of the promise.
    pub name: String,
    /// Verdict.
    pub verdict: PromiseVerdict,
    /// Invariants that cover the promise.
    pub checkers: Vec<String>,
    /// Number of facts that their checkers verified.
    pub checked: u64,
}

/// Returns the verdict on each promise. `is_weak` is true for a run that proves too little.
pub(super) fn promises(checked: &[Checked], is_weak: bool) -> Vec<PromiseResult> {
    let result = |(number, name): (u8, &str)| {
        let covering: Vec<&Checked> =
            checked.iter().filter(|checked| checked.promises.contains(&number)).collect();
        let facts = covering.iter().map(|checked| checked.verdict.checked).sum();
        let verdict = if covering.iter().any(|checked| !checked.verdict.holds()) {
            PromiseVerdict::Broken
        } else if covering.is_empty() {
            PromiseVerdict::Uncovered
        } else if is_weak || facts == 0 {
            PromiseVerdict::Unproven
        } else {
            PromiseVerdict::Kept
        };
        let checkers = covering.iter().map(|checked| checked.id.clone()).collect();
        PromiseResult { number, name: name.to_owned(), verdict, checkers, checked: facts }
    };
    (1..).zip(NAMES).map(result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::Verdict;

    #[test]
    fn a_promise_is_as_good_as_the_worst_of_its_checkers() {
        let checked = |id: &str, promises: &[u8], checked, violations| Checked {
            id: id.to_owned(),
            name: String::new(),
            about: String::new(),
            promises: promises.to_vec(),
            verdict: Verdict { checked, violations, ..Verdict::default() },
        };
        let all = [checked("I1", &[1, 2], 5, 0), checked("I2", &[2], 5, 1), checked("I3", &[3], 0, 0)];
        let verdicts: Vec<PromiseVerdict> =
            promises(&all, false).iter().map(|promise| promise.verdict).collect();
        use PromiseVerdict::{Broken, Kept, Uncovered, Unproven};
        assert_eq!(verdicts[..4], [Kept, Broken, Unproven, Uncovered]);
        assert_eq!(promises(&all, true)[0].verdict, Unproven);
    }
}
