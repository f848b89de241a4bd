//! Allocation: candidates of a request, the choice among them, and the claims that wait.

pub(crate) mod adopt;
pub(crate) mod candidates;
pub(crate) mod carry_over;
pub(crate) mod choosing;
pub(crate) mod course;
mod host;
mod missing;
mod node_limits;
pub(crate) mod patterns;
pub(crate) mod pick;
pub(crate) mod preallocated;
pub mod quota;
pub(crate) mod request;
pub(crate) mod routing;
pub(crate) mod selectors;
pub(crate) mod waiting;
