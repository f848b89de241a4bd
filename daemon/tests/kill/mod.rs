//! Processes killed with -9 at any moment: no acknowledged change is lost, no address allocated twice.

mod clients;
mod members;
mod plugins;
mod upgrade;
mod writers;

use crate::support::{Cluster, programs};

/// `shipped` of something when the shipped binaries run, `debug` where only cargo's slow ones do.
fn many(shipped: usize, debug: usize) -> usize {
    if programs::shipped().is_some() { shipped } else { debug }
}

/// A cluster that takes snapshots all the time, so that they are interrupted too.
fn restless() -> Cluster {
    let timing = "heartbeat_ms = 50\nelection_min_ms = 150\nelection_max_ms = 300";
    Cluster::of_with(3, &format!("{timing}\nsnapshot_every_entries = 200"))
}
