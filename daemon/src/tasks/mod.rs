//! Leader-only tasks. Each is an idempotent function without input, in a file of its own; what it does goes
//! through the log, and none repeats anything itself: the next round will.

mod expire;
pub mod journal;
mod leader;
mod level;
mod run;

pub use self::run::run;
