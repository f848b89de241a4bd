//! Kill points of tests (option `--kill-at` of `serve`), and replacements for a simulation.
//!
//! No shipped program has them (feature `testing`).

use std::cell::Cell;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use clap::ValueEnum;
use rustix::process::{Signal, getpid, kill_process};

/// Point at which this process is killed; 0 for none.
static ARMED: AtomicU8 = AtomicU8::new(0);

/// Points before and after changes of the host's configuration until this process is killed; 0 for none.
static CHANGES: AtomicU32 = AtomicU32::new(0);

/// Sources of a simulation, in place of those of the kernel.
#[derive(Debug, Clone, Copy)]
pub struct Simulation {
    /// Draws a random number.
    pub random: fn() -> u64,
    /// Returns the microseconds since the boot of the machine.
    pub boot_us: fn() -> u64,
}

thread_local! {
    /// Simulation that runs on this thread.
    static SIMULATION: Cell<Option<Simulation>> = const { Cell::new(None) };
}

/// Lets all agents of this thread use the sources of a simulation, and no other thread.
///
/// A result of another thread would arrive at a time that the simulation does not control.
pub fn simulate(simulation: Simulation) {
    SIMULATION.set(Some(simulation));
}

/// Simulation that runs on this thread, if one does.
pub(crate) fn simulated() -> Option<Simulation> {
    SIMULATION.get()
}

/// Kills this process at a point before or after a change of the host's configuration, counted from 1.
pub fn kill_at_change(point: u32) {
    CHANGES.store(point, Ordering::Relaxed);
}

/// Notes that the process is before or after a change of the host's configuration.
pub(crate) fn at_change() {
    let counted = CHANGES.try_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
    if counted == Ok(1) {
        let _ = kill_process(getpid(), Signal::KILL);
    }
}

/// Step of the agent at which it is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[repr(u8)]
pub enum KillPoint {
    /// An ADD was read, and isn't recorded.
    AddRead = 1,
    /// An ADD is recorded, and wasn't sent.
    AddRecorded,
    /// The outcome of an ADD is recorded, and the plugin has no answer.
    Attached,
    /// A DEL was read, and isn't recorded.
    DelRead,
    /// A DEL is on disk, and wasn't sent.
    DelSynced,
    /// The cluster has executed a DEL, and the journal has no record of it.
    DelExecuted,
    /// The new journal is on disk, beside the old one.
    JournalWritten,
    /// The new journal has replaced the old one.
    JournalReplaced,
    /// The secret of a join is on disk, and wasn't sent.
    SecretWritten,
    /// The cluster has accepted the secret, and it isn't in its place.
    Joined,
}

impl KillPoint {
    /// Kills this process once it reaches the point.
    pub fn arm(self) {
        ARMED.store(self as u8, Ordering::Relaxed);
    }

    /// Notes that the process is at the point.
    pub(crate) fn reach(self) {
        if ARMED.load(Ordering::Relaxed) == self as u8 {
            let _ = kill_process(getpid(), Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt as _;
    use ipam_api::agent::Netns;

    use super::*;
    use crate::backoff::jittered;
    use crate::boot;
    use crate::netns::is_gone;

    #[test]
    fn an_agent_in_a_simulation_has_the_sources_and_the_thread_of_the_simulation() {
        // The simulation ends with the thread.
        let simulated = std::thread::spawn(|| {
            simulate(Simulation { random: || 255, boot_us: || 7 });
            assert_eq!(boot::now("b1").at_us, 7);
            assert_eq!(jittered(Duration::from_secs(2)), Duration::from_secs(2));
            simulate(Simulation { random: || 0, boot_us: || 8 });
            assert_eq!(jittered(Duration::from_secs(2)), Duration::from_secs(1));
            // Without a runtime, there is no blocking thread.
            let netns = Netns { device: 0, inode: 0, path: "/".to_owned() };
            assert_eq!(is_gone(&netns).now_or_never(), Some(true));
        });
        simulated.join().unwrap();
    }
}
