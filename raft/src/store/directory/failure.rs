//! Reasons for which an open store stops to serve.

use ipam_machine::Broken;

/// The reason for which a store stops to serve: the process must end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoreFailure {
    /// Files can't be written or read any more, or a thread of the store has panicked.
    Disk(String),
    /// The state breaks an invariant, and must not be read again.
    Broken(Broken),
}
