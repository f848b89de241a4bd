//! Link of all hosts: stations that answer ARP and NDP, and the probes of agents.
//!
//! Stations are containers, gateways, and foreign hosts. A host doesn't hear its own containers, as the
//! parent of macvlan interfaces doesn't. Each frame arrives at once, unless a host is blind.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ipam_agent::probe::{MacAddr, Outcome, ProbeError, Purpose};
use ipam_agent::probing::links::Found;
use ipam_agent::probing::wire::Wire;
use ipam_api::limits::{PROBE_ADDRESSES_MAX, PROBE_ANSWER_MS};
use ipam_api::mac::MacAddress;
use ipnet::IpNet;
use tokio::time::sleep;

use crate::sync::held;
use crate::workload::gateways;

/// Host of the gateways and of foreign stations, which has no agent.
pub(super) const GATEWAY_HOST: &str = "e1";
/// Ethernet address of this host.
pub(super) const GATEWAY_MAC: MacAddr = mac_of(21);
/// Interface of each host.
const INTERFACE: &str = "eth0";
/// Time from a question to its answer.
const ROUND_TRIP: Duration = Duration::from_millis(1);

/// Ethernet address of the host with a number.
const fn mac_of(number: u8) -> MacAddr {
    MacAddr(0x02, 0, 0, 0x77, 0, number)
}

/// Link of all hosts. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Lan(Arc<Mutex<LanState>>);

#[derive(Debug)]
struct LanState {
    /// Stations by host and container.
    stations: BTreeMap<(String, String), Station>,
    /// Hosts that neither send nor receive ARP and NDP.
    blind: BTreeSet<String>,
    /// Number of frames that blindness has dropped.
    dropped: u64,
}

#[derive(Debug)]
struct Station {
    mac: MacAddr,
    addresses: BTreeSet<IpAddr>,
}

impl Default for LanState {
    /// Link on which only the gateways of the probed subnets answer, permanently.
    fn default() -> Self {
        let gateways = Station { mac: GATEWAY_MAC, addresses: gateways().into_iter().collect() };
        let key = (GATEWAY_HOST.to_owned(), "gateway".to_owned());
        Self { stations: BTreeMap::from([(key, gateways)]), blind: BTreeSet::new(), dropped: 0 }
    }
}

impl LanState {
    /// Sends a question from a host; returns the answers of other hosts' stations.
    fn ask(&mut self, from: &str, address: IpAddr) -> Outcome {
        if self.blind.contains(from) {
            self.dropped += 1;
            return Outcome::Silent;
        }
        self.dropped += self.blind.len() as u64;
        let hears = |host: &str| host != from && !self.blind.contains(host);
        let answers = self
            .stations
            .iter()
            .filter(|((host, _), station)| hears(host) && station.addresses.contains(&address));
        let mut macs = answers.map(|(_, station)| station.mac);
        let Some(mac) = macs.next() else { return Outcome::Silent };
        Outcome::Answered { mac, second: macs.find(|other| *other != mac), round_trip: ROUND_TRIP }
    }
}

impl Lan {
    /// Lets a station answer at these addresses and no others.
    pub(super) fn answer(&self, host: &str, container: &str, mac: MacAddr, addresses: &[IpAddr]) {
        let station = Station { mac, addresses: addresses.iter().copied().collect() };
        held(&self.0).stations.insert((host.to_owned(), container.to_owned()), station);
    }

    /// Removes a station.
    pub(super) fn unplug(&self, host: &str, container: &str) {
        held(&self.0).stations.remove(&(host.to_owned(), container.to_owned()));
    }

    /// Removes all stations of a host.
    pub(super) fn unplug_all(&self, host: &str) {
        held(&self.0).stations.retain(|(other, _), _| other != host);
    }

    /// Begins or ends the blindness of hosts.
    pub(super) fn set_blind(&self, hosts: &[String], is_blind: bool) {
        let mut state = held(&self.0);
        for host in hosts {
            if is_blind {
                state.blind.insert(host.clone());
            } else {
                state.blind.remove(host);
            }
        }
    }

    /// Number of frames that blindness has dropped.
    pub(super) fn dropped(&self) -> u64 {
        held(&self.0).dropped
    }

    /// Interface of a host on the link.
    pub(super) fn wire(&self, host: &str, number: u8) -> HostOnLan {
        HostOnLan { lan: self.clone(), host: host.to_owned(), number }
    }

    fn ask(&self, from: &str, addresses: &BTreeSet<IpAddr>) -> BTreeMap<IpAddr, Outcome> {
        let mut state = held(&self.0);
        addresses.iter().map(|address| (*address, state.ask(from, *address))).collect()
    }
}

/// Interface of a host on the link, for the probes of its agent.
#[derive(Debug, Clone)]
pub(super) struct HostOnLan {
    lan: Lan,
    host: String,
    number: u8,
}

impl Wire for HostOnLan {
    fn permitted(&self) -> Result<(), ProbeError> {
        Ok(())
    }

    async fn interfaces(&self) -> Result<Vec<Found>, ProbeError> {
        let v4 = Ipv4Addr::new(10, 77, 0, self.number);
        let v6 = Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, self.number.into());
        let networks = vec![IpNet::new_assert(v4.into(), 16), IpNet::new_assert(v6.into(), 64)];
        Ok(vec![Found { name: INTERFACE.to_owned(), networks, is_up: true, mac: Some(mac_of(self.number)) }])
    }

    async fn probe(
        &self,
        interface: &str,
        addresses: &BTreeSet<IpAddr>,
        purpose: Purpose,
    ) -> Result<BTreeMap<IpAddr, Outcome>, ProbeError> {
        if interface != INTERFACE {
            let (name, present) = (interface.to_owned(), INTERFACE.to_owned());
            return Err(ProbeError::UnknownInterface { name, present });
        }
        if addresses.len() > PROBE_ADDRESSES_MAX {
            return Err(ProbeError::TooMany(addresses.len()));
        }
        // A probe asks for each address once, at its start.
        let outcomes = self.lan.ask(&self.host, addresses);
        let is_settled = outcomes.values().all(|outcome| outcome.is_settled(purpose));
        sleep(if is_settled { ROUND_TRIP } else { Duration::from_millis(PROBE_ANSWER_MS) }).await;
        Ok(outcomes)
    }

    async fn announce(
        &self,
        _interface: &str,
        _mac: MacAddress,
        _addresses: &[Ipv4Addr],
    ) -> Result<(), ProbeError> {
        Ok(())
    }

    async fn advertise(
        &self,
        _interface: &str,
        _mac: MacAddress,
        _addresses: &[Ipv6Addr],
    ) -> Result<(), ProbeError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    const ONE: MacAddr = MacAddr(2, 0, 0, 0, 0, 1);
    const TWO: MacAddr = MacAddr(2, 0, 0, 0, 0, 2);
    const NONE: [MacAddr; 0] = [];
    const SEVEN: &str = "10.77.129.7";

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// Stations that answer a probe from a host at one address.
    async fn heard(lan: &Lan, from: &str, address: &str) -> Vec<MacAddr> {
        let wire = lan.wire(from, 11);
        let outcomes =
            wire.probe(INTERFACE, &BTreeSet::from([ip(address)]), Purpose::Conflict).await.unwrap();
        assert_eq!(outcomes.len(), 1);
        outcomes[&ip(address)].macs().collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_hears_the_stations_of_other_hosts() {
        let lan = Lan::default();
        lan.answer("c1", "a", ONE, &[ip(SEVEN), ip("fd77::7")]);
        assert_eq!(heard(&lan, "c1", SEVEN).await, NONE);
        assert_eq!(heard(&lan, "c2", SEVEN).await, [ONE]);
        assert_eq!(heard(&lan, "c2", "fd77::7").await, [ONE]);
        lan.answer("c2", "b", TWO, &[ip(SEVEN)]);
        lan.answer(GATEWAY_HOST, "foreign", GATEWAY_MAC, &[ip(SEVEN)]);
        assert_eq!(heard(&lan, "c1", SEVEN).await, [TWO, GATEWAY_MAC]);
        // A list replaces the former one.
        lan.answer("c2", "b", TWO, &[ip("fd77::7")]);
        assert_eq!(heard(&lan, "c1", SEVEN).await, [GATEWAY_MAC]);
        assert_eq!(heard(&lan, "c1", "fd77::7").await, [TWO]);
        lan.unplug("c2", "b");
        lan.unplug("c2", "unknown");
        assert_eq!(heard(&lan, "c1", "fd77::7").await, NONE);
        lan.unplug_all("c1");
        assert_eq!(heard(&lan, "c2", SEVEN).await, [GATEWAY_MAC]);
    }

    #[tokio::test(start_paused = true)]
    async fn blind_hosts_neither_ask_nor_answer() {
        let (lan, blind) = (Lan::default(), ["c2".to_owned()]);
        lan.answer("c1", "a", ONE, &[ip(SEVEN)]);
        lan.answer("c2", "b", TWO, &[ip(SEVEN)]);
        lan.set_blind(&blind, true);
        assert_eq!(lan.dropped(), 0);
        assert_eq!(heard(&lan, "c1", SEVEN).await, NONE);
        assert_eq!(heard(&lan, "c2", SEVEN).await, NONE);
        lan.set_blind(&blind, false);
        assert_eq!(lan.dropped(), 2);
        assert_eq!(heard(&lan, "c1", SEVEN).await, [TWO]);
        assert_eq!(heard(&lan, "c2", SEVEN).await, [ONE]);
        assert_eq!(lan.dropped(), 2);
    }

    #[tokio::test]
    async fn a_probe_on_another_interface_or_of_too_many_addresses_fails() {
        let wire = Lan::default().wire("c1", 11);
        let unknown = wire.probe("eth1", &BTreeSet::from([ip(SEVEN)]), Purpose::Conflict).await;
        assert!(matches!(unknown, Err(ProbeError::UnknownInterface { .. })), "{unknown:?}");
        let all = (1_u32..).map(|number| IpAddr::from(Ipv4Addr::from(number)));
        let many: BTreeSet<IpAddr> = all.take(PROBE_ADDRESSES_MAX + 1).collect();
        let many = wire.probe(INTERFACE, &many, Purpose::Conflict).await;
        assert!(matches!(many, Err(ProbeError::TooMany(_))), "{many:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn gateways_answer_at_once_and_silence_takes_its_time() {
        let lan = Lan::default();
        let wire = lan.wire("c1", 11);
        let [interface] = <[Found; 1]>::try_from(wire.interfaces().await.unwrap()).unwrap();
        let shown: Vec<String> = interface.networks.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["10.77.0.11/16", "fd77::b/64"]);
        assert_eq!(interface.mac, Some(MacAddr(2, 0, 0, 0x77, 0, 11)));
        let addresses: BTreeSet<IpAddr> = gateways().into_iter().collect();
        let is_on_link =
            |address: &IpAddr| interface.networks.iter().any(|network| network.contains(address));
        assert!(!addresses.is_empty() && addresses.iter().all(is_on_link));
        for (purpose, is_quick) in [(Purpose::Gateway, true), (Purpose::Conflict, false)] {
            let began = Instant::now();
            let outcomes = wire.probe(INTERFACE, &addresses, purpose).await.unwrap();
            assert!(outcomes.values().all(|outcome| outcome.macs().eq([GATEWAY_MAC])), "{outcomes:?}");
            assert_eq!(began.elapsed() < Duration::from_millis(PROBE_ANSWER_MS), is_quick, "{purpose:?}");
        }
    }
}
