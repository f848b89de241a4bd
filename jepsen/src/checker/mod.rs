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
mod durable_answers;
mod event_streams;
mod exactly_once;
mod exclusive_holds;
mod exits;
mod finals;
#[cfg(test)]
pub(crate) mod fixtures;
pub mod intervals;
pub mod journal;
mod late_requests;
mod linearizable;
pub mod model;
mod no_leaks;
mod no_live_reclaim;
mod no_resurrection;
mod orphans;
mod own_ends;
pub mod pairs;
mod read_order;
mod reads_at_revisions;
mod record;
mod registers;
mod registry;
mod releases;
pub mod space;
mod starving_claims;
#[cfg(test)]
pub(crate) mod testing;
pub mod timeline;
mod verdict;
pub mod wgl;
mod whole_effects;

pub use self::definition::Checker;
pub(crate) use self::exits::panics;
pub use self::record::{Exit, Final, Record, Sample, Settings};
pub use self::registry::all;
pub use self::verdict::{Anomaly, Verdict};
