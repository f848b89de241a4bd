//! Checkers: each verifies one invariant on a stored run, one file for each.
//!
//! A checker is a pure function of the record of a run. It knows neither workloads nor nemeses.

pub mod availability;
pub mod block;
mod cni_idempotence;
mod conservation;
mod coverage;
mod definition;
mod digests;
mod event_streams;
mod exits;
mod finals;
#[cfg(test)]
pub(crate) mod fixtures;
mod i01_exclusive_holds;
mod i02_linearizable;
mod i03_durable_answers;
mod i04_no_resurrection;
mod i05_exactly_once;
mod i06_whole_effects;
mod i07_no_live_reclaim;
mod i08_no_leaks;
mod i09_own_ends;
pub mod intervals;
pub mod journal;
pub mod model;
pub mod pairs;
mod read_order;
mod reads_at_revisions;
mod record;
mod registers;
mod registry;
mod releases;
pub mod space;
#[cfg(test)]
pub(crate) mod testing;
pub mod timeline;
mod verdict;
pub mod wgl;

pub use self::definition::Checker;
pub use self::record::{Exit, Final, Record, Sample, Settings};
pub use self::registry::all;
pub use self::verdict::{Anomaly, Verdict};
