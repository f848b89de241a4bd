//! Comparison of replicas: every member requests all others' checkpoints and judges its own state. The leader
//! has no special role in it.
//!
//! **Invariant:** a member whose state a majority contradicts, or may contradict, serves no client until the
//! majority agrees with its state again.

mod awaited;
mod comparing;
mod integrity;
mod judging;
mod rebuilding;
mod report;
mod trust;

pub(super) use comparing::run;
pub(super) use integrity::Integrity;
pub(super) use rebuilding::send_snapshot;
pub(super) use trust::Trust;
