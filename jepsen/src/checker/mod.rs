//! Checkers: each verifies one invariant on a stored run, one file for each.
//!
//! A checker is a pure function of the record of a run. It knows neither workloads nor nemeses.

pub mod availability;
mod cni_idempotence;
mod conservation;
mod coverage;
mod definition;
mod digests;
mod event_streams;
mod exits;
#[cfg(test)]
pub(crate) mod fixtures;
pub mod intervals;
mod read_order;
mod record;
mod registry;
mod verdict;

pub use self::definition::Checker;
pub use self::record::{Exit, Final, Record, Sample, Settings};
pub use self::registry::all;
pub use self::verdict::{Anomaly, Verdict};
