//! Wire of this host: its interfaces, and probes on them. Tests use a fake.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use ipam_api::mac::MacAddress;
use pnet_base::MacAddr;
use tokio::time::{Instant, sleep};

use crate::probe::{
    Interface, Interfaces, Outcome, ProbeError, Purpose, advertise, announce, permitted, probe,
};
use crate::probing::links::Found;

/// Longest time that the ADD of a container waits for the IPv6 link-local address of its interface. A bridge
/// gets that address with its first port, which the main plugin adds just before it requests addresses.
const LINK_LOCAL_WAIT: Duration = Duration::from_secs(1);
/// Time between two checks for that address.
const LINK_LOCAL_PAUSE: Duration = Duration::from_millis(20);

/// Interfaces of a host, and probes on them.
pub trait Wire: Send + Sync {
    /// Returns an error if this process may not probe.
    ///
    /// # Errors
    /// The kernel's refusal.
    fn permitted(&self) -> Result<(), ProbeError>;

    /// Reads the interfaces as they are now.
    fn interfaces(&self) -> impl Future<Output = Result<Vec<Found>, ProbeError>> + Send;

    /// Probes addresses on the link of an interface, as [`probe`].
    fn probe(
        &self,
        interface: &str,
        addresses: &BTreeSet<IpAddr>,
        purpose: Purpose,
    ) -> impl Future<Output = Result<BTreeMap<IpAddr, Outcome>, ProbeError>> + Send;

    /// Announces addresses of a station behind an interface, as [`announce`].
    ///
    /// # Errors
    /// The reason why a frame was not sent.
    fn announce(
        &self,
        interface: &str,
        mac: MacAddress,
        addresses: &[Ipv4Addr],
    ) -> impl Future<Output = Result<(), ProbeError>> + Send;

    /// Announces IPv6 addresses of an interface, as [`advertise`].
    ///
    /// # Errors
    /// The reason why a frame was not sent.
    fn advertise(
        &self,
        interface: &str,
        mac: MacAddress,
        addresses: &[Ipv6Addr],
    ) -> impl Future<Output = Result<(), ProbeError>> + Send;
}

/// This host.
#[derive(Debug, Clone, Copy)]
pub struct HostWire {
    link_local_wait: Duration,
}

impl HostWire {
    /// Wire for a container's ADD, which may come before its interface is ready for IPv6.
    #[must_use]
    pub fn for_add() -> Self {
        Self { link_local_wait: LINK_LOCAL_WAIT }
    }

    /// Wire for jobs of the cluster.
    #[must_use]
    pub fn for_jobs() -> Self {
        Self { link_local_wait: Duration::ZERO }
    }
}

impl Wire for HostWire {
    fn permitted(&self) -> Result<(), ProbeError> {
        permitted()
    }

    async fn interfaces(&self) -> Result<Vec<Found>, ProbeError> {
        Ok(Found::all(&read().await?))
    }

    async fn probe(
        &self,
        interface: &str,
        addresses: &BTreeSet<IpAddr>,
        purpose: Purpose,
    ) -> Result<BTreeMap<IpAddr, Outcome>, ProbeError> {
        let began = Instant::now();
        loop {
            let interfaces = read().await?;
            let found = named(&interfaces, interface)?;
            match probe(found, &interfaces.macs(), addresses, purpose).await {
                Err(ProbeError::NoLinkLocal(_)) if began.elapsed() < self.link_local_wait => {
                    sleep(LINK_LOCAL_PAUSE).await;
                }
                result => return result,
            }
        }
    }

    async fn announce(
        &self,
        interface: &str,
        mac: MacAddress,
        addresses: &[Ipv4Addr],
    ) -> Result<(), ProbeError> {
        announce(named(&read().await?, interface)?, MacAddr::from(mac.octets()), addresses)
    }

    async fn advertise(
        &self,
        interface: &str,
        mac: MacAddress,
        addresses: &[Ipv6Addr],
    ) -> Result<(), ProbeError> {
        advertise(named(&read().await?, interface)?, MacAddr::from(mac.octets()), addresses)
    }
}

fn named<'a>(interfaces: &'a Interfaces, name: &str) -> Result<&'a Interface, ProbeError> {
    interfaces.named(name).ok_or_else(|| ProbeError::UnknownInterface {
        name: name.to_owned(),
        present: interfaces.names().collect::<Vec<_>>().join(", "),
    })
}

/// Reads the interfaces on a blocking thread: the kernel's list of a busy host is long.
async fn read() -> Result<Interfaces, ProbeError> {
    let read = tokio::task::spawn_blocking(Interfaces::read).await;
    read.unwrap_or_else(|error| Err(std::io::Error::other(error))).map_err(ProbeError::Interfaces)
}
