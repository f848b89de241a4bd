//! Machines: hosts with their data directories, boots and wall clocks.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::{Handle, Id};

use crate::sync::held;

/// Wall clock at the begin of each run: 20 November 2026, in milliseconds since 1970.
pub(super) const EPOCH_MS: u64 = 1_795_132_800_000;

/// A host, and what its process needs to be a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Machine {
    /// Name of host and member.
    pub(super) name: String,
    /// Data directory.
    pub(super) dir: PathBuf,
    /// Names of the members that it knows at its start.
    pub(super) others: Vec<String>,
    /// True if it joins an existing cluster.
    pub(super) joins: bool,
}

/// Machines by name: those of members, and of former ones. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Machines(Arc<Mutex<BTreeMap<String, Machine>>>);

impl Machines {
    /// Puts a machine in the place of the one with its name.
    pub(super) fn put(&self, machine: Machine) {
        held(&self.0).insert(machine.name.clone(), machine);
    }

    /// The machine of a host.
    pub(super) fn get(&self, name: &str) -> Option<Machine> {
        held(&self.0).get(name).cloned()
    }
}

/// Fault of a wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WrongClock {
    /// Shift in milliseconds.
    pub(super) shift_ms: i64,
    /// Rate in parts per million on top of the true one.
    pub(super) drift_ppm: i64,
}

/// Wall clock with a fault.
#[derive(Debug, Clone, Copy)]
struct Clock {
    wrong: WrongClock,
    since: Duration,
}

impl Clock {
    /// Difference from the right clock, in milliseconds.
    fn difference_ms(&self) -> i64 {
        let elapsed = turmoil::sim_elapsed().unwrap_or_default().saturating_sub(self.since);
        let time_ms = i64::try_from(ms(elapsed)).unwrap_or(i64::MAX);
        self.wrong.shift_ms.saturating_add(time_ms.saturating_mul(self.wrong.drift_ppm) / 1_000_000)
    }
}

thread_local! {
    /// Number of boots of the machine with a data directory.
    static BOOTS: RefCell<BTreeMap<PathBuf, u64>> = const { RefCell::new(BTreeMap::new()) };
    /// Runtimes of the running members: the clock has no other sign of the host that reads it.
    static RUNTIMES: RefCell<Vec<(Id, String)>> = const { RefCell::new(Vec::new()) };
    /// Wrong wall clocks of hosts.
    static CLOCKS: RefCell<BTreeMap<String, Clock>> = const { RefCell::new(BTreeMap::new()) };
}

/// Id of the present boot of the machine with this data directory.
pub(super) fn boot_id(dir: &Path) -> String {
    let boots = BOOTS.with_borrow(|boots| boots.get(dir).copied().unwrap_or_default());
    format!("boot-{boots}")
}

/// Boots the machine with this data directory.
pub(super) fn boot(dir: &Path) {
    BOOTS.with_borrow_mut(|boots| *boots.entry(dir.to_owned()).or_default() += 1);
}

/// Ties the present runtime to a host.
pub(super) fn begin(name: &str) {
    let id = Handle::current().id();
    RUNTIMES.with_borrow_mut(|runtimes| {
        runtimes.retain(|(_, other)| other != name);
        runtimes.push((id, name.to_owned()));
    });
}

/// Sets the fault of a host's wall clock. One that is there goes on.
pub(super) fn set_clock(name: &str, wrong: Option<WrongClock>) {
    let since = turmoil::sim_elapsed().unwrap_or_default();
    CLOCKS.with_borrow_mut(|clocks| match wrong {
        Some(wrong) if clocks.get(name).is_some_and(|clock| clock.wrong == wrong) => {}
        Some(wrong) => drop(clocks.insert(name.to_owned(), Clock { wrong, since })),
        None => drop(clocks.remove(name)),
    });
}

/// Difference of a host's wall clock from the right one, in milliseconds.
pub(super) fn clock_difference_ms(name: &str) -> i64 {
    CLOCKS.with_borrow(|clocks| clocks.get(name).map_or(0, Clock::difference_ms))
}

/// Wall clock of the host whose task calls, in milliseconds since 1970.
pub(super) fn wall_ms() -> u64 {
    let right = EPOCH_MS + ms(turmoil::sim_elapsed().unwrap_or_default());
    let Ok(runtime) = Handle::try_current().map(|handle| handle.id()) else { return right };
    CLOCKS.with_borrow(|clocks| {
        let is_here = |name: &str| {
            RUNTIMES.with_borrow(|all| all.iter().any(|(id, other)| *id == runtime && other == name))
        };
        let clock = clocks.iter().find(|(name, _)| is_here(name)).map(|(_, clock)| clock);
        clock.map_or(right, |clock| right.saturating_add_signed(clock.difference_ms()))
    })
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
