//! Definition of a checker.

use super::{Record, Verdict};

/// Verifies one invariant.
pub trait Checker: Send + Sync {
    /// Number of the invariant, `I1` to `I17`.
    fn id(&self) -> &'static str;

    /// Name of the invariant.
    fn name(&self) -> &'static str;

    /// Numbers of the promises (DESIGN, section 3) that the invariant covers.
    fn promises(&self) -> &'static [u8];

    /// The invariant in one sentence.
    fn about(&self) -> &'static str;

    /// Verifies a run.
    fn check(&self, record: &Record) -> Verdict;
}
