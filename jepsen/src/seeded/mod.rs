//! Seeded bugs: the start options of the test build that runs must detect, and the run that detects each.
//!
//! Options are defined beside the code that they break, in `raft/machine/src/seeded.rs` and
//! `cni/agent/src/seeded.rs`.

mod bugs;
mod mutants;
mod simulated;

pub use self::bugs::{ALL, Bug, Process, options_of};
pub use self::mutants::{Arguments, run};
