//! Probes of addresses on the links of this host: ARP and NDP.
//!
//! A probe finds the stations that use an address. It changes no route and no address. Except for the check
//! of an IPv6 gateway, it also changes no neighbour cache of any host.

mod command;
mod error;
pub mod frame;
mod interface;
mod socket;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use ipam_api::limits::{
    PROBE_ADDRESSES_MAX, PROBE_ANSWER_MS, PROBE_FRAMES_AT_ONCE_MAX, PROBE_SEND_PAUSE_MS,
    PROBE_SEND_RETRIES_MAX,
};
use pnet_packet::ethernet::EtherTypes;
use tokio::time::{Instant, sleep, timeout_at};

pub use self::command::{Arguments, main};
pub use self::error::ProbeError;
pub use self::interface::{Interface, Interfaces};
use self::socket::PacketSocket;
pub use pnet_base::MacAddr;

/// Question that probes answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Does another host use an address that is to be allocated?
    Conflict,
    /// Is a gateway reachable?
    Gateway,
}

/// Result of the probe of one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A station other than this host uses the address.
    Answered {
        /// Ethernet address of the station.
        mac: MacAddr,
        /// Ethernet address of another station that uses the address, too.
        second: Option<MacAddr>,
        /// Time from the probe to the first answer.
        round_trip: Duration,
    },
    /// No answer arrived in time.
    Silent,
}

impl Outcome {
    /// Ethernet addresses of the stations that use the address, at most two.
    pub fn macs(self) -> impl Iterator<Item = MacAddr> {
        let macs = match self {
            Self::Answered { mac, second, .. } => [Some(mac), second],
            Self::Silent => [None, None],
        };
        macs.into_iter().flatten()
    }

    /// Returns true if a further answer would change nothing. A gateway needs one answer; for a conflict, the
    /// answers of two stations are kept.
    #[must_use]
    pub fn is_settled(self, purpose: Purpose) -> bool {
        match (self, purpose) {
            (Self::Silent, _) => false,
            (Self::Answered { second, .. }, Purpose::Conflict) => second.is_some(),
            (Self::Answered { .. }, Purpose::Gateway) => true,
        }
    }
}

/// Address whose answer is awaited.
#[derive(Debug)]
struct Asked {
    sent: Instant,
    outcome: Outcome,
}

/// Probes addresses on the link of one interface, all at once.
///
/// Answers of the stations in `own` are ignored: a host's own addresses are no conflict.
///
/// # Errors
/// The reason for which no result would be reliable.
pub async fn probe(
    interface: &Interface,
    own: &BTreeSet<MacAddr>,
    addresses: &BTreeSet<IpAddr>,
    purpose: Purpose,
) -> Result<BTreeMap<IpAddr, Outcome>, ProbeError> {
    if addresses.len() > PROBE_ADDRESSES_MAX {
        return Err(ProbeError::TooMany(addresses.len()));
    }
    let (v4, v6): (Vec<IpAddr>, Vec<IpAddr>) = addresses.iter().partition(|address| address.is_ipv4());
    let (mut outcomes, more) =
        tokio::try_join!(family(interface, own, &v4, purpose), family(interface, own, &v6, purpose),)?;
    outcomes.extend(more);
    Ok(outcomes)
}

/// Announces IPv4 addresses of a station behind the interface, once each (RFC 5227, 2.3).
///
/// # Errors
/// The reason why a frame was not sent.
pub fn announce(interface: &Interface, mac: MacAddr, addresses: &[Ipv4Addr]) -> Result<(), ProbeError> {
    if interface.mac().is_none() {
        return Err(ProbeError::NotEthernet(interface.name.clone()));
    }
    let socket = PacketSocket::open(interface.link, EtherTypes::Arp)
        .map_err(|error| ProbeError::open(&interface.name, error))?;
    for address in addresses {
        socket.send(&frame::arp_announcement(mac, *address)).map_err(|error| ProbeError::Send {
            interface: interface.name.clone(),
            address: IpAddr::V4(*address),
            error,
        })?;
    }
    Ok(())
}

/// Announces IPv6 addresses of this host, once each, by unsolicited neighbour advertisements.
///
/// # Errors
/// The reason why a frame was not sent.
pub fn advertise(interface: &Interface, mac: MacAddr, addresses: &[Ipv6Addr]) -> Result<(), ProbeError> {
    if addresses.is_empty() {
        return Ok(());
    }
    let socket = PacketSocket::open(interface.link, EtherTypes::Ipv6)
        .map_err(|error| ProbeError::open(&interface.name, error))?;
    for address in addresses {
        socket.send(&frame::advertisement(mac, *address)).map_err(|error| ProbeError::Send {
            interface: interface.name.clone(),
            address: IpAddr::V6(*address),
            error,
        })?;
    }
    Ok(())
}

/// Probes addresses of one family.
async fn family(
    interface: &Interface,
    own: &BTreeSet<MacAddr>,
    addresses: &[IpAddr],
    purpose: Purpose,
) -> Result<BTreeMap<IpAddr, Outcome>, ProbeError> {
    let mut frames = Vec::with_capacity(addresses.len());
    for address in addresses {
        frames.push((*address, question(interface, *address, purpose)?));
    }
    let Some(first) = addresses.first() else { return Ok(BTreeMap::new()) };
    let ethertype = if first.is_ipv4() { EtherTypes::Arp } else { EtherTypes::Ipv6 };
    let mut socket = PacketSocket::open(interface.link, ethertype)
        .map_err(|error| ProbeError::open(&interface.name, error))?;
    let failed = |error| ProbeError::Receive { interface: interface.name.clone(), error };
    let mut asked = BTreeMap::new();
    for (address, frame) in frames {
        let sent = send(&socket, &frame).await.map_err(|error| ProbeError::Send {
            interface: interface.name.clone(),
            address,
            error,
        })?;
        asked.insert(address, Asked { sent, outcome: Outcome::Silent });
        take(&mut socket, own, &mut asked).map_err(failed)?;
    }
    let deadline = Instant::now() + Duration::from_millis(PROBE_ANSWER_MS);
    loop {
        let is_over = Instant::now() >= deadline;
        // Frames are read even after the deadline: on a busy host, answers wait in the socket.
        take(&mut socket, own, &mut asked).map_err(failed)?;
        if is_over || asked.values().all(|one| one.outcome.is_settled(purpose)) {
            break;
        }
        if let Ok(waited) = timeout_at(deadline, socket.wait()).await {
            waited.map_err(failed)?;
        }
    }
    Ok(asked.into_iter().map(|(address, one)| (address, one.outcome)).collect())
}

/// Builds the probe of an address.
fn question(interface: &Interface, address: IpAddr, purpose: Purpose) -> Result<Vec<u8>, ProbeError> {
    let mac = interface.mac().ok_or_else(|| ProbeError::NotEthernet(interface.name.clone()))?;
    match address {
        // For 0.0.0.0, the host's own ARP probes would count as answers, since it is their sender address.
        _ if address.is_unspecified() || address.is_multicast() || address.is_loopback() => {
            Err(ProbeError::NotUnicast(address))
        }
        IpAddr::V4(target) if target.is_broadcast() => Err(ProbeError::NotUnicast(address)),
        IpAddr::V4(target) => Ok(frame::arp_probe(mac, target)),
        IpAddr::V6(target) => {
            if let Some(target) = target.to_ipv4_mapped() {
                return Err(ProbeError::Mapped(target));
            }
            // An interface without IPv6 isn't in the group of all nodes, and would miss the answers.
            let link_local =
                interface.link_local().ok_or_else(|| ProbeError::NoLinkLocal(interface.name.clone()))?;
            let source = (purpose == Purpose::Gateway).then_some(link_local);
            Ok(frame::solicitation(mac, source, target))
        }
    }
}

/// Sends a frame, again after failures; returns when it was sent.
async fn send(socket: &PacketSocket, frame: &[u8]) -> std::io::Result<Instant> {
    let mut retries = 0;
    loop {
        let sent = Instant::now();
        match socket.send(frame) {
            Ok(()) => return Ok(sent),
            Err(error) if retries == PROBE_SEND_RETRIES_MAX => return Err(error),
            Err(_) => retries += 1,
        }
        sleep(Duration::from_millis(PROBE_SEND_PAUSE_MS)).await;
    }
}

/// Reads the frames that have arrived, up to a limit, so that a flood of frames does not block the agent.
fn take(
    socket: &mut PacketSocket,
    own: &BTreeSet<MacAddr>,
    asked: &mut BTreeMap<IpAddr, Asked>,
) -> std::io::Result<()> {
    for _ in 0..PROBE_FRAMES_AT_ONCE_MAX {
        let Some(bytes) = socket.take()? else { break };
        if let Some((address, mac)) = frame::answer(bytes) {
            note(own, asked, address, mac);
        }
    }
    Ok(())
}

/// Notes the first two stations that answer for a probed address.
fn note(own: &BTreeSet<MacAddr>, asked: &mut BTreeMap<IpAddr, Asked>, address: IpAddr, mac: MacAddr) {
    if own.contains(&mac) {
        return;
    }
    let Some(one) = asked.get_mut(&address) else { return };
    match &mut one.outcome {
        Outcome::Silent => {
            one.outcome = Outcome::Answered { mac, second: None, round_trip: one.sent.elapsed() };
        }
        Outcome::Answered { mac: first, second, .. } if second.is_none() && *first != mac => {
            *second = Some(mac);
        }
        Outcome::Answered { .. } => {}
    }
}

/// Returns an error if this process may not probe, for instance without CAP_NET_RAW.
///
/// # Errors
/// The kernel's refusal of a packet socket.
pub fn permitted() -> Result<(), ProbeError> {
    socket::permitted().map_err(|error| ProbeError::open("the node", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_two_foreign_stations_of_an_asked_address_count() {
        let [ours, theirs, other_host, third] = [1, 2, 3, 4].map(|last| MacAddr::new(2, 0, 0, 0, 0, last));
        let own = BTreeSet::from([ours]);
        let [address, other]: [IpAddr; 2] = ["10.0.0.7", "10.0.0.8"].map(|text| text.parse().unwrap());
        let silent = || Asked { sent: Instant::now(), outcome: Outcome::Silent };
        let mut asked = BTreeMap::from([(address, silent())]);
        note(&own, &mut asked, address, ours);
        note(&own, &mut asked, other, theirs);
        assert_eq!((asked.len(), asked[&address].outcome), (1, Outcome::Silent));
        let is_settled = |asked: &BTreeMap<_, Asked>| {
            let one: &Asked = &asked[&address];
            (one.outcome.is_settled(Purpose::Gateway), one.outcome.is_settled(Purpose::Conflict))
        };
        assert_eq!(is_settled(&asked), (false, false));
        note(&own, &mut asked, address, theirs);
        note(&own, &mut asked, address, theirs);
        assert_eq!(is_settled(&asked), (true, false));
        for mac in [ours, other_host, third] {
            note(&own, &mut asked, address, mac);
        }
        assert!(asked[&address].outcome.macs().eq([theirs, other_host]));
        assert_eq!(is_settled(&asked), (true, true));
    }
}
