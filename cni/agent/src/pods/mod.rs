//! Pods of the node: watched at the API server, kept in the journal, and added to the requests of their ADDs.
//!
//! **Invariant:** absence from this view releases nothing. A list may be stale, a watch may be interrupted,
//! and a pod may be newer than both; the view only explains an ADD.

mod events;
mod fill;
mod find;
mod object;
mod owners;
mod refusal;
mod view;
mod watch;

#[cfg(test)]
mod tests;

pub use self::events::Subject;
pub use self::fill::fill;
pub use self::find::Wanted;
pub use self::object::Object;
pub use self::refusal::{is_allowed, unknown};
pub use self::view::{PodView, State};
