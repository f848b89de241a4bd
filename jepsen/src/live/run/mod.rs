//! Driver of one run: phases, schedule of faults, samples, final states and the journal.

mod bench;
mod course;
mod finals;
mod frame;
mod history_file;
mod idle;
mod journal;
mod live_bench;
mod members;
mod nodes;
mod plan;
mod progress;
mod sampler;
mod schedule;
mod sessions;

pub(crate) use self::bench::{Bench, Reachable, Spawner};
pub(crate) use self::frame::Recorded;
pub use self::frame::run;
pub(crate) use self::idle::IdleMeter;
pub use self::plan::{Plan, Step};
