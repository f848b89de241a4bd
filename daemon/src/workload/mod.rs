//! Verdicts on workloads: their observed states decide on their addresses.
//!
//! The functions are pure. The handler of `/v1/workloads` calls them.

mod incarnation;
#[cfg(test)]
mod tests;
mod verdict;

pub use self::incarnation::Incarnation;
pub use self::verdict::{Facts, Known, NodeEvidence, Switches, Verdict, verdict};
