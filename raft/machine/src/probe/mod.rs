//! Results of probes: checks ahead of requests, conflicts, and the stations of allocated addresses.

mod conflict;
mod jobs;
mod neighbor;
mod news;
mod report;

pub use self::jobs::{ProbeJobs, Sweep};
