//! Leader-only tasks.
//!
//! Each is an idempotent function without input, in a file of its own. Its effect goes through the log, and
//! it has no retries: the next round is the retry.

mod expire;
mod gc;
pub mod journal;
mod leader;
#[cfg(any(feature = "kubernetes", feature = "meridio"))]
mod leadership;
mod level;
mod run;
mod scan;
mod silent_nodes;
mod status;
mod task;

pub use self::gc::GcSettings;
#[cfg(any(feature = "kubernetes", feature = "meridio"))]
pub(crate) use self::leadership::in_each_leadership;
pub use self::run::run;
pub use self::status::Statuses;
