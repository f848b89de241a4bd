//! The state machine: pure. No I/O, no async, no clock, no randomness, no hash order.
//!
//! [`apply`] takes the state, the time of the entry and a command; it returns the outcome and the events. The
//! same commands give the same bytes on every member: that is the whole of replication.
//!
//! **Invariants:** a refused command changes nothing but log time and, if one of them is the reason, the
//! record of an unconfirmed boot or of a false claim; every row is in exactly one table, and every change of
//! a row changes the digest; derived data ([`state`]'s index) can be rebuilt from the rows alone; ids are
//! revisions and are never reused.

pub mod access;
pub mod allocate;
mod apply;
mod automatic;
mod broken;
pub mod cluster;
pub mod command;
mod dispatch;
mod endpoint;
pub mod event;
#[cfg(feature = "testing")]
pub mod fixtures;
pub mod invariant;
pub mod journal;
mod pods;
mod prefix;
mod prefix_claims;
mod probe;
mod reclaim;
mod resource;
mod seeded;
pub mod space;
pub mod state;
#[cfg(feature = "testing")]
pub mod testing;
mod tree;
mod value;
pub mod view;

pub use allocate::quota;
pub use broken::{Broken, broken};
pub use cluster::level;
pub use command::{Action, Answer, Applied, Cause, Command, Grant, Origin, Outcome, Refusal, Terms, batch};
pub use dispatch::{apply, carry_out, dry_run};
pub use event::{Event, EventKind, field_change as change};
pub use journal::{By, EventId, Happened, Journaled};
pub use probe::{ProbeJobs, Sweep};
pub use reclaim::node::{Suspect, SuspectPlace};
pub use seeded::SeededBug;
pub use space::free_set;
pub use state::damaged::Damaged;
pub use state::id::{self, Id};
pub use state::key::ReplayUsage;
pub use state::loading::{Indexed, LANES, Loading, lane};
pub use state::row_key::RowKey;
pub use state::{State, row as model, table};
pub use value::At;
pub use value::cause::Rule;
pub use view::{explain, holders, map, skipped};
