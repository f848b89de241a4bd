//! Leader-only tasks.
//!
//! Each is an idempotent function without input, in a file of its own. Its effect goes through the log, and
//! it has no retries: the next round is the retry.

mod expire;
pub mod journal;
mod leader;
mod level;
mod run;

pub use self::run::run;
