//! Wire of the tests.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ipam_api::mac::MacAddress;
use pnet_base::MacAddr;

use crate::probe::{Outcome, ProbeError, Purpose};
use crate::probing::links::Found;
use crate::probing::wire::Wire;

/// Station that is in no inventory.
pub(crate) const FOREIGN: MacAddr = MacAddr(2, 0, 0, 0, 0, 9);

/// The bridge of this host.
pub(crate) const OWN: MacAddr = MacAddr(2, 0, 0, 0, 0, 1);

/// Wire with a bridge `br0`, `eth0` without Ethernet, and stations.
#[derive(Debug, Clone)]
pub(crate) struct FakeWire {
    /// Address of the bridge.
    pub(crate) own: &'static str,
    /// Stations by address.
    pub(crate) stations: BTreeMap<IpAddr, Vec<MacAddr>>,
    /// The link accepts no frame.
    pub(crate) is_down: bool,
    /// This process may not probe.
    pub(crate) is_forbidden: bool,
    /// Probes so far.
    pub(crate) probes: Arc<Mutex<Vec<String>>>,
}

impl Default for FakeWire {
    fn default() -> Self {
        Self {
            own: "10.9.0.1/24",
            stations: BTreeMap::new(),
            is_down: false,
            is_forbidden: false,
            probes: Arc::default(),
        }
    }
}

impl FakeWire {
    /// Wire whose gateways answer, and foreign stations at some addresses.
    pub(crate) fn with(foreign: &[&str]) -> Self {
        let all = ["10.0.0.254", "2001:db8::ff"].iter().chain(foreign);
        let stations = all.map(|address| (address.parse().unwrap(), vec![FOREIGN])).collect();
        Self { stations, ..Self::default() }
    }

    pub(crate) fn probes(&self) -> Vec<String> {
        self.probes.lock().unwrap().clone()
    }
}

impl Wire for FakeWire {
    fn permitted(&self) -> Result<(), ProbeError> {
        if self.is_forbidden { Err(ProbeError::NotPermitted) } else { Ok(()) }
    }

    async fn interfaces(&self) -> Result<Vec<Found>, ProbeError> {
        let found = |name: &str, network: &str, mac| {
            let networks = vec![network.parse().unwrap()];
            Found { name: name.to_owned(), networks, is_up: true, mac }
        };
        Ok(vec![found("br0", self.own, Some(OWN)), found("eth0", "10.0.0.200/24", None)])
    }

    async fn probe(
        &self,
        interface: &str,
        addresses: &BTreeSet<IpAddr>,
        purpose: Purpose,
    ) -> Result<BTreeMap<IpAddr, Outcome>, ProbeError> {
        let texts: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        self.probes.lock().unwrap().push(format!("{purpose:?} {interface} {}", texts.join(" ")));
        if let Some(address) = addresses.first().filter(|_| self.is_down) {
            let error = std::io::Error::from_raw_os_error(100);
            return Err(ProbeError::Send { interface: interface.to_owned(), address: *address, error });
        }
        let outcome = |address: &IpAddr| match self.stations.get(address).map(Vec::as_slice) {
            None | Some([]) => Outcome::Silent,
            Some([mac, rest @ ..]) => {
                let second = rest.first().copied();
                Outcome::Answered { mac: *mac, second, round_trip: Duration::ZERO }
            }
        };
        Ok(addresses.iter().map(|address| (*address, outcome(address))).collect())
    }

    async fn announce(
        &self,
        interface: &str,
        mac: MacAddress,
        addresses: &[Ipv4Addr],
    ) -> Result<(), ProbeError> {
        let texts: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        self.probes.lock().unwrap().push(format!("Announce {interface} {mac} {}", texts.join(" ")));
        Ok(())
    }

    async fn advertise(
        &self,
        interface: &str,
        mac: MacAddress,
        addresses: &[Ipv6Addr],
    ) -> Result<(), ProbeError> {
        let texts: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        self.probes.lock().unwrap().push(format!("Advertise {interface} {mac} {}", texts.join(" ")));
        Ok(())
    }
}
