//! Simulation: replacements for the system services that members use, on one thread.
//!
//! A thread that has called [`enter`] runs whole clusters as tasks: their threads are tasks of its runtimes
//! (`threads.rs`), their random numbers come from a seed, their peers answer in a network of the simulation,
//! and their disks lose, delay and refuse writes on demand. Shipped programs contain none of this.
//!
//! Disk faults affect the log only. Other files are written before the next step of their member, and can be
//! rebuilt from log and snapshot.

mod disk;
mod pausing;
mod random;
#[cfg(feature = "testing")]
mod runtime;

use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};

#[cfg(any(test, feature = "testing"))]
pub use ipam_machine::testing::simulate_next_level;

pub use self::disk::{DiskFault, set_disk};
pub(crate) use self::disk::{before_write, free_bytes, ready, sync};
#[cfg(not(any(test, feature = "testing")))]
pub(crate) use self::pausing::pausable;
#[cfg(any(test, feature = "testing"))]
pub use self::pausing::{pausable, pause, resume};
pub use self::random::new_id;
pub(crate) use self::random::random_id;
#[cfg(feature = "testing")]
pub(crate) use self::runtime::PausableRuntime;

/// Future of an operation of the simulation.
pub type Simulated<'a, T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send + 'a>>;

/// Both halves of a stream between members.
pub type Halves = (Box<dyn AsyncRead + Send + Sync + Unpin>, Box<dyn AsyncWrite + Send + Sync + Unpin>);

/// Replacements of one simulation.
#[derive(Debug, Clone, Copy)]
pub struct Simulation {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Connects to the peer port at `host:port`.
    pub connect: fn(&str) -> Simulated<'static, Halves>,
    /// Id of the present boot of the machine with this data directory.
    pub boot_id: fn(&Path) -> String,
}

/// Port at which a simulated member answers its peers.
pub trait Port: std::fmt::Debug + Send + Sync {
    /// Accepts the next connection.
    fn accept(&self) -> Simulated<'_, (Halves, IpAddr)>;
}

#[cfg(any(test, feature = "testing"))]
mod present {
    use std::cell::Cell;

    use super::Simulation;

    thread_local! {
        static PRESENT: Cell<Option<Simulation>> = const { Cell::new(None) };
    }

    /// Makes this thread a simulation.
    pub fn enter(simulation: Simulation) {
        PRESENT.set(Some(simulation));
    }

    /// The simulation of this thread.
    pub(crate) fn present() -> Option<Simulation> {
        PRESENT.get()
    }
}

#[cfg(not(any(test, feature = "testing")))]
mod present {
    use super::Simulation;

    pub(crate) const fn present() -> Option<Simulation> {
        None
    }
}

#[cfg(any(test, feature = "testing"))]
pub use self::disk::{cut_power, faulty_calls};
#[cfg(any(test, feature = "testing"))]
pub use self::present::enter;
pub(crate) use self::present::present;

/// Turns an option of the test build on, in the whole process.
///
/// # Errors
/// If no option has this name.
#[cfg(any(test, feature = "testing"))]
pub fn turn_on(option: &str) -> Result<(), ipam_machine::testing::UnknownOption> {
    option.parse().map(ipam_machine::testing::TestOption::turn_on)
}
