//! Load: clients of one system in closed and open loops, with histograms, CPU time and bytes written.

mod burst;
mod client;
mod closed;
mod histogram;
mod measured;
mod meter;
mod open;
mod outcome;
mod recorder;
mod schedule;

pub(super) use self::burst::burst;
pub(super) use self::client::{Answer, Call, Client};
pub(super) use self::closed::closed;
pub(super) use self::measured::Measured;
pub(super) use self::meter::Process;
pub(super) use self::open::open;
pub(super) use self::outcome::{Load, Times};
