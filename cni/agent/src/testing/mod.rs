//! Kill points of tests (option `--kill-at` of `serve`), and the time and randomness of a simulation.
//!
//! No shipped program has them (feature `testing`).

mod kill_points;
mod simulation;

pub(crate) use self::kill_points::at_change;
pub use self::kill_points::{KillPoint, kill_at_change};
pub(crate) use self::simulation::present;
pub use self::simulation::{Simulation, simulate};
