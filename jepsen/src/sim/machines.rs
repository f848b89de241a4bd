//! Machines: hosts with their data directories, boots, wall clocks, programs and processes.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ipam_raft::simulation;
use tokio::runtime::{Handle, Id};
use tokio::sync::Notify;

use crate::sync::held;

/// Wall clock at the begin of each run: 20 November 2026, in milliseconds since 1970.
pub(super) const EPOCH_MS: u64 = 1_795_132_800_000;

/// Host with the parameters that its process needs to be a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Machine {
    /// Name of host and member.
    pub(super) name: String,
    /// Data directory.
    pub(super) dir: PathBuf,
    /// Names of the other members that the process knows at its start.
    pub(super) others: Vec<String>,
    /// True if it joins an existing cluster.
    pub(super) joins: bool,
}

/// Machines by name: those of members, and of former ones. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Machines(Arc<Mutex<BTreeMap<String, Machine>>>);

impl Machines {
    /// Adds a machine, or replaces the machine with the same name.
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

/// Reason of a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reason {
    /// SIGSTOP.
    Signal,
    /// Limit of CPU time.
    Cpu,
}

thread_local! {
    /// Number of boots of the machine with a data directory.
    static BOOTS: RefCell<BTreeMap<PathBuf, u64>> = const { RefCell::new(BTreeMap::new()) };
    /// Runtimes of the running members: the clock identifies the calling host by its runtime.
    static RUNTIMES: RefCell<Vec<(Id, String)>> = const { RefCell::new(Vec::new()) };
    /// Wrong wall clocks of hosts.
    static CLOCKS: RefCell<BTreeMap<String, Clock>> = const { RefCell::new(BTreeMap::new()) };
    /// Reasons for which the processes of hosts are paused.
    static PAUSES: RefCell<BTreeMap<String, BTreeSet<Reason>>> = const { RefCell::new(BTreeMap::new()) };
    /// Signals to processes of hosts to end gracefully.
    static STOPS: RefCell<BTreeMap<String, Arc<Notify>>> = const { RefCell::new(BTreeMap::new()) };
    /// Hosts whose program knows the next feature level.
    static UPGRADED: RefCell<BTreeSet<String>> = const { RefCell::new(BTreeSet::new()) };
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

/// Clock of all machines that no process can set, in microseconds. A boot doesn't set it back.
pub(super) fn boot_us() -> u64 {
    u64::try_from(turmoil::sim_elapsed().unwrap_or_default().as_micros()).unwrap_or(u64::MAX)
}

/// Begins a process of a host on the present runtime; returns the signal to end gracefully.
pub(super) fn begin(name: &str) -> Arc<Notify> {
    PAUSES.with_borrow_mut(|pauses| pauses.remove(name));
    if let Some(former) = runtime_of(name) {
        simulation::resume(former);
    }
    let id = Handle::current().id();
    RUNTIMES.with_borrow_mut(|runtimes| {
        runtimes.retain(|(_, other)| other != name);
        runtimes.push((id, name.to_owned()));
    });
    let stop = Arc::new(Notify::new());
    STOPS.with_borrow_mut(|stops| stops.insert(name.to_owned(), Arc::clone(&stop)));
    stop
}

/// Signals the process of a host to end gracefully.
pub(super) fn stop(name: &str) {
    if let Some(stop) = STOPS.with_borrow(|stops| stops.get(name).cloned()) {
        stop.notify_one();
    }
}

fn runtime_of(name: &str) -> Option<Id> {
    RUNTIMES.with_borrow(|all| all.iter().find(|(_, other)| other == name).map(|(id, _)| *id))
}

/// The host whose task calls.
fn here() -> Option<String> {
    let here = Handle::try_current().ok()?.id();
    RUNTIMES.with_borrow(|all| all.iter().find(|(id, _)| *id == here).map(|(_, name)| name.clone()))
}

/// Pauses the process of a host.
pub(super) fn pause(name: &str, reason: Reason) {
    PAUSES.with_borrow_mut(|pauses| pauses.entry(name.to_owned()).or_default().insert(reason));
    if let Some(runtime) = runtime_of(name) {
        simulation::pause(runtime);
    }
}

/// Removes a reason of a pause. After the last reason, returns the number of turns that tasks did not get.
pub(super) fn resume(name: &str, reason: Reason) -> u64 {
    let is_over = PAUSES.with_borrow_mut(|pauses| {
        pauses.get_mut(name).is_some_and(|reasons| reasons.remove(&reason) && reasons.is_empty())
    });
    runtime_of(name).filter(|_| is_over).map_or(0, simulation::resume)
}

/// Gives a host the program that knows the next feature level.
pub(super) fn upgrade(name: &str) {
    UPGRADED.with_borrow_mut(|upgraded| upgraded.insert(name.to_owned()));
}

/// True if the program of a host knows the next feature level.
pub(super) fn is_upgraded(name: &str) -> bool {
    UPGRADED.with_borrow(|upgraded| upgraded.contains(name))
}

/// True if the program of the host whose task calls knows the next feature level.
pub(super) fn knows_next_level() -> bool {
    UPGRADED.with_borrow(|upgraded| !upgraded.is_empty()) && here().is_some_and(|name| is_upgraded(&name))
}

/// Sets the fault of a host's wall clock. An equal fault continues without a new begin.
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
    CLOCKS.with_borrow(|clocks| {
        if clocks.is_empty() {
            return right;
        }
        let clock = here().and_then(|name| clocks.get(&name));
        clock.map_or(right, |clock| right.saturating_add_signed(clock.difference_ms()))
    })
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
pub(super) mod tests {
    use std::io;

    use ipam_raft::simulation::{Simulation, enter, pausable};
    use tokio::time::sleep;

    use super::*;

    /// Makes the thread of a test a simulation without a network.
    pub(crate) fn simulate() {
        enter(Simulation {
            seed: 1,
            connect: |_| Box::pin(async { Err(io::Error::other("no network")) }),
            boot_id: |_| "boot".to_owned(),
        });
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_ends_with_its_last_reason() {
        simulate();
        drop(begin("m1"));
        let task = tokio::spawn(pausable(sleep(Duration::from_secs(1))));
        pause("m1", Reason::Signal);
        pause("m1", Reason::Cpu);
        sleep(Duration::from_secs(4)).await;
        assert_eq!(resume("m1", Reason::Signal), 0);
        sleep(Duration::from_secs(4)).await;
        assert!(!task.is_finished());
        assert_eq!(resume("m1", Reason::Cpu), 1, "the turn after the timer");
        task.await.unwrap();
        assert_eq!(resume("m1", Reason::Cpu), 0, "nothing is paused");
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_process_runs_and_gets_the_signals_to_its_host() {
        simulate();
        let former = begin("m1");
        pause("m1", Reason::Signal);
        let present = begin("m1");
        tokio::spawn(pausable(async {})).await.unwrap();
        stop("m2");
        stop("m1");
        present.notified().await;
        assert!(tokio::time::timeout(Duration::from_secs(1), former.notified()).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn only_upgraded_hosts_know_the_next_level() {
        simulate();
        drop(begin("m1"));
        upgrade("m2");
        assert!(is_upgraded("m2") && !knows_next_level());
        upgrade("m1");
        assert!(knows_next_level());
    }
}
