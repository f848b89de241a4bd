//! Network segment: all hosts and the switch that joins them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use anyhow::{Result, bail};

use super::count::{Counters, Flow};
use super::held::PortId;
use super::host::Host;
use super::pump::{Pump, Reader};
use super::rules::Rules;
use super::switch::Shared;
use super::{Impairment, Link};
use crate::sync::held;

/// Hosts, the switch with its threads, and the active faults.
///
/// Hosts have no uplink: frames reach other hosts of the same network and nothing else. Dropping this value
/// removes all devices; a namespace ends with the last [`Host`] and the last process inside.
pub struct Network {
    stations: Mutex<BTreeMap<String, Station>>,
    shared: Arc<Shared>,
    /// Pump, dropped last.
    pump: Pump,
}

/// Host with its connection to the switch.
struct Station {
    host: Arc<Host>,
    port: PortId,
    reader: Reader,
}

impl Network {
    /// Makes a network without hosts. The seed determines the choices of impairments.
    ///
    /// # Errors
    /// If the threads of the switch can't start.
    pub fn make(seed: u64) -> Result<Self> {
        let shared = Arc::new(Shared::new(seed));
        let pump = Pump::start(Arc::clone(&shared))?;
        Ok(Self { stations: Mutex::default(), shared, pump })
    }

    /// Adds a host with 10.77.0.0/16 and fd77::/64, whose addresses end with `number`.
    ///
    /// # Errors
    /// Without the rights of root or TAP devices, or if the name or the number is in use.
    pub fn add_host(&self, name: &str, number: u16) -> Result<Arc<Host>> {
        let mut stations = held(&self.stations);
        if stations.contains_key(name) {
            bail!("there is a host {name} already");
        }
        let (host, tap) = Host::make(name, number, self.pump.handle())?;
        if let Some(other) = stations.values().find(|one| one.host.ipv4 == host.ipv4) {
            bail!("{name} and {} have the same address", other.host.name);
        }
        let host = Arc::new(host);
        let port = self.shared.lock().add_port(name, Arc::clone(&tap) as _);
        let reader = self.pump.read(port, tap);
        stations.insert(name.to_owned(), Station { host: Arc::clone(&host), port, reader });
        Ok(host)
    }

    /// Removes a host's device. Its namespace ends with the last [`Host`] and the last process inside.
    pub fn remove_host(&self, name: &str) {
        let Some(station) = held(&self.stations).remove(name) else { return };
        self.shared.lock().remove_port(station.port);
        station.host.disconnect();
        station.reader.stop();
    }

    /// Returns a host by its name.
    #[must_use]
    pub fn host(&self, name: &str) -> Option<Arc<Host>> {
        held(&self.stations).get(name).map(|station| Arc::clone(&station.host))
    }

    /// Names of all hosts.
    #[must_use]
    pub fn hosts(&self) -> Vec<String> {
        held(&self.stations).keys().cloned().collect()
    }

    /// Drops all frames of these links, also those in flight. A link that is cut twice is healed twice.
    pub fn cut(&self, links: &[Link]) {
        self.change(|rules| rules.cut(links));
    }

    /// Undoes one cut of each of these links.
    pub fn heal(&self, links: &[Link]) {
        self.change(|rules| rules.heal(links));
    }

    /// Impairs the frames from and to a host, in addition to its other impairments.
    pub fn impair(&self, host: &str, impairment: Impairment) {
        self.change(|rules| rules.impair(host, impairment));
    }

    /// Undoes one impairment of a host; others remain.
    pub fn lift(&self, host: &str, impairment: &Impairment) {
        self.change(|rules| rules.lift(host, impairment));
    }

    /// Undoes all impairments of a host.
    pub fn clear(&self, host: &str) {
        self.change(|rules| rules.clear(host));
    }

    /// Drops ARP and NDP from and to a host; other frames pass. Two calls with true need two with false.
    pub fn blind(&self, host: &str, on: bool) {
        self.change(|rules| rules.blind(host, on));
    }

    /// Undoes all faults. Frames in flight arrive when they are due.
    pub fn heal_all(&self) {
        self.change(|rules| *rules = Rules::default());
    }

    /// Numbers of frames, in total and by sender.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let mut counters = Counters::default();
        for (link, flow) in self.flows() {
            counters.total += flow.count;
            *counters.hosts.entry(link.from).or_default() += flow.count;
        }
        counters
    }

    /// Traffic of each ordered pair of hosts.
    #[must_use]
    pub fn flows(&self) -> BTreeMap<Link, Flow> {
        self.shared.lock().fabric.flows()
    }

    fn change(&self, change: impl FnOnce(&mut Rules)) {
        let mut switch = self.shared.lock();
        change(&mut switch.fabric.rules);
        switch.fabric.refresh();
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in self.hosts() {
            self.remove_host(&name);
        }
    }
}
