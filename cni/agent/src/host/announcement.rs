//! Announcement of new addresses, so that other hosts replace cached MAC addresses of former holders.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::kernel::Kernel;
use super::session::Session;
use crate::probing::wire::Wire;

/// Announces new addresses that can be used now. Other addresses wait for a carrier, or for the end of
/// duplicate address detection.
pub(super) async fn announce<K: Kernel>(session: &mut Session<K>, wire: &impl Wire) {
    if session.unannounced.is_empty() || wire.permitted().is_err() {
        return;
    }
    let Ok(observed) = session.kernel.observe().await else { return };
    let mut by_device: BTreeMap<String, (Vec<Ipv4Addr>, Vec<Ipv6Addr>)> = BTreeMap::new();
    let mut waiting = std::mem::take(&mut session.unannounced);
    waiting.retain(|(device, address)| {
        let Some(link) = observed.named(device) else { return false };
        let found =
            observed.addresses.iter().find(|one| one.link == link.index && one.address.addr() == *address);
        let Some(found) = found.filter(|one| !one.is_duplicate) else { return false };
        if !link.has_carrier || found.is_tentative {
            return true;
        }
        let (four, six) = by_device.entry(device.clone()).or_default();
        match address {
            IpAddr::V4(address) => four.push(*address),
            IpAddr::V6(address) => six.push(*address),
        }
        false
    });
    session.unannounced = waiting;
    for (device, (four, six)) in by_device {
        let Some(mac) = observed.named(&device).and_then(|link| link.mac) else { continue };
        let announced = wire.announce(&device, mac, &four).await;
        let announced = match announced {
            Ok(()) => wire.advertise(&device, mac, &six).await,
            failed => failed,
        };
        match announced {
            Ok(()) => tracing::info!(%device, ?four, ?six, "addresses are announced"),
            Err(error) => tracing::warn!(%device, %error, "addresses can't be announced"),
        }
    }
}
