//! Verdicts on workloads: their observed states decide on their addresses.
//!
//! The functions are pure. REST and the watcher of Kubernetes feed them.

mod incarnation;
#[cfg(test)]
mod tests;
mod verdict;

pub use self::incarnation::Incarnation;
pub use self::verdict::{Facts, Known, NodeEvidence, Switches, Verdict, verdict};
