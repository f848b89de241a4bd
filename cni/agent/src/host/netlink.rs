//! Kernel of this host over netlink.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use futures::TryStreamExt as _;
use ipam_api::brand::NETLINK_PROTOCOL;
use ipam_api::mac::MacAddress;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::address::{AddressAttribute, AddressFlags, AddressMessage, AddressProtocol};
use rtnetlink::packet_route::link::{InfoData, InfoVlan, LinkAttribute, LinkFlags, LinkInfo, LinkMessage};
use rtnetlink::packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use rtnetlink::{Handle, LinkUnspec, LinkVlan, new_connection_with_strict_check};

use super::kernel::{Change, HostAddress, HostRoute, Kernel, KernelError, Link, Observed};

/// First kernel that keeps the protocol number of an address.
const TAGS_SINCE: (u32, u32) = (5, 18);
/// Settings of IPv4 by interface.
const IPV4_SETTINGS: &str = "/proc/sys/net/ipv4/conf";

/// Kernel of this host.
#[derive(Debug, Clone)]
pub struct Netlink {
    has_tags: bool,
}

/// Netlink socket for one read or one change: a list that is not read to its end blocks the next request.
struct Socket {
    handle: Handle,
}

impl Netlink {
    /// Opens a netlink socket, to check that the kernel permits it.
    ///
    /// # Errors
    /// The kernel's refusal of the socket.
    pub fn open() -> io::Result<Self> {
        drop(new_connection_with_strict_check()?);
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        Ok(Self { has_tags: version(&release).is_none_or(|version| version >= TAGS_SINCE) })
    }
}

impl Socket {
    /// Opens a socket. Its task ends when the socket is dropped.
    fn open() -> Result<Self, KernelError> {
        let opened = new_connection_with_strict_check();
        let (connection, handle, _) = opened.map_err(|error| KernelError::Other(error.to_string()))?;
        tokio::spawn(connection);
        Ok(Self { handle })
    }

    async fn index(&self, device: &str) -> Result<u32, KernelError> {
        let mut found = self.handle.link().get().match_name(device.to_owned()).execute();
        let link = found.try_next().await.map_err(error)?.ok_or(KernelError::Missing)?;
        Ok(link.header.index)
    }

    async fn routes(&self, family: AddressFamily) -> Result<Vec<(u32, HostRoute)>, KernelError> {
        let mut filter = RouteMessage::default();
        filter.header.address_family = family;
        filter.header.table = RouteHeader::RT_TABLE_MAIN;
        filter.header.protocol = RouteProtocol::Other(NETLINK_PROTOCOL);
        let mut routes = Vec::new();
        let mut found = self.handle.route().get(filter).execute();
        while let Some(message) = found.try_next().await.map_err(error)? {
            // A kernel without strict checks sends all routes.
            if message.header.protocol == RouteProtocol::Other(NETLINK_PROTOCOL) {
                routes.extend(route(&message));
            }
        }
        Ok(routes)
    }
}

impl Kernel for Netlink {
    async fn observe(&self) -> Result<Observed, KernelError> {
        let socket = Socket::open()?;
        let links: Vec<LinkMessage> =
            socket.handle.link().get().execute().try_collect().await.map_err(error)?;
        let addresses: Vec<AddressMessage> =
            socket.handle.address().get().execute().try_collect().await.map_err(error)?;
        let mut routes = socket.routes(AddressFamily::Inet).await?;
        routes.extend(socket.routes(AddressFamily::Inet6).await?);
        Ok(Observed {
            links: links.iter().filter_map(link).collect(),
            addresses: addresses.iter().filter_map(address).collect(),
            routes,
            has_tags: self.has_tags,
        })
    }

    async fn change(&self, change: &Change) -> Result<(), KernelError> {
        let socket = Socket::open()?;
        let links = socket.handle.link();
        let made = match change {
            Change::AddVlan { device, parent, id } => {
                let parent = socket.index(parent).await?;
                links.add(LinkVlan::new(device, parent, *id).build()).execute().await
            }
            Change::RemoveVlan { device } => links.del(socket.index(device).await?).execute().await,
            Change::SetUp { device } => {
                links
                    .set(LinkUnspec::new_with_index(socket.index(device).await?).up().build())
                    .execute()
                    .await
            }
            Change::SetMtu { device, mtu } => {
                let index = socket.index(device).await?;
                links.set(LinkUnspec::new_with_index(index).mtu(*mtu).build()).execute().await
            }
            Change::AddAddress { device, address } => {
                let index = socket.index(device).await?;
                let mut add = socket.handle.address().add(index, address.addr(), address.prefix_len());
                let protocol = AddressAttribute::Protocol(AddressProtocol::Other(NETLINK_PROTOCOL));
                add.message_mut().attributes.push(protocol);
                add.execute().await
            }
            Change::RemoveAddress { device, address, has_others } => {
                if *has_others {
                    keep_others(Path::new(IPV4_SETTINGS), device)?;
                }
                let message = address_message(socket.index(device).await?, *address);
                socket.handle.address().del(message).execute().await
            }
            Change::AddRoute { device, route } => {
                let message = route_message(socket.index(device).await?, route);
                socket.handle.route().add(message).execute().await
            }
            Change::RemoveRoute { device, route } => {
                let message = route_message(socket.index(device).await?, route);
                socket.handle.route().del(message).execute().await
            }
        };
        made.map_err(error)
    }
}

/// Makes the kernel keep the other addresses of a prefix when the first one is removed.
///
/// By default, the kernel removes all addresses of the prefix.
///
/// # Errors
/// The failed write of the setting; the address must stay then.
fn keep_others(settings: &Path, device: &str) -> Result<(), KernelError> {
    let setting = settings.join(device).join("promote_secondaries");
    let Err(error) = fs::write(&setting, "1") else { return Ok(()) };
    if fs::read_to_string(&setting).is_ok_and(|value| value.trim() == "1") {
        return Ok(());
    }
    let setting = setting.display();
    Err(KernelError::Other(format!("{setting}: {error}; other addresses of the prefix would go with it")))
}

/// First two numbers of a kernel's release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|byte: char| !byte.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn error(error: rtnetlink::Error) -> KernelError {
    let rtnetlink::Error::NetlinkError(message) = &error else {
        return KernelError::Other(error.to_string());
    };
    let error = message.to_io();
    match error.raw_os_error() {
        Some(17) => KernelError::Exists,
        // ENOENT, ESRCH, ENODEV, EADDRNOTAVAIL.
        Some(2 | 3 | 19 | 99) => KernelError::Missing,
        Some(1) => KernelError::NotPermitted,
        _ => KernelError::Other(error.to_string()),
    }
}

fn mac(octets: &[u8]) -> Option<MacAddress> {
    <[u8; 6]>::try_from(octets).ok().map(MacAddress::new).filter(|mac| mac.is_unicast())
}

fn link(message: &LinkMessage) -> Option<Link> {
    let flags = message.header.flags;
    let mut link = Link {
        index: message.header.index,
        name: String::new(),
        mac: None,
        permanent_mac: None,
        mtu: 0,
        is_up: flags.contains(LinkFlags::Up),
        has_carrier: flags.contains(LinkFlags::LowerUp),
        is_loopback: flags.contains(LinkFlags::Loopback),
        vlan: None,
        parent: None,
        is_port: false,
    };
    let mut id = None;
    for attribute in &message.attributes {
        match attribute {
            LinkAttribute::IfName(name) => link.name.clone_from(name),
            LinkAttribute::Address(octets) => link.mac = mac(octets),
            LinkAttribute::PermAddress(octets) => link.permanent_mac = mac(octets),
            LinkAttribute::Mtu(mtu) => link.mtu = *mtu,
            LinkAttribute::Link(index) => link.parent = Some(*index),
            LinkAttribute::Controller(index) => link.is_port = *index != 0,
            LinkAttribute::LinkInfo(infos) => id = infos.iter().find_map(vlan_id),
            _ => {}
        }
    }
    link.vlan = link.parent.zip(id);
    (!link.name.is_empty()).then_some(link)
}

fn vlan_id(info: &LinkInfo) -> Option<u16> {
    let LinkInfo::Data(InfoData::Vlan(settings)) = info else { return None };
    settings.iter().find_map(|one| if let InfoVlan::Id(id) = one { Some(*id) } else { None })
}

fn address(message: &AddressMessage) -> Option<HostAddress> {
    let (mut local, mut peer) = (None, None);
    let mut flags = AddressFlags::from_bits_retain(u32::from(message.header.flags.bits()));
    let mut is_tagged = false;
    for attribute in &message.attributes {
        match attribute {
            AddressAttribute::Local(address) => local = Some(*address),
            AddressAttribute::Address(address) => peer = Some(*address),
            AddressAttribute::Flags(all) => flags = *all,
            AddressAttribute::Protocol(AddressProtocol::Other(NETLINK_PROTOCOL)) => is_tagged = true,
            _ => {}
        }
    }
    Some(HostAddress {
        link: message.header.index,
        address: IpNet::new(local.or(peer)?, message.header.prefix_len).ok()?,
        is_tagged,
        is_tentative: flags.contains(AddressFlags::Tentative),
        is_duplicate: flags.contains(AddressFlags::Dadfailed),
    })
}

fn address_message(index: u32, address: IpNet) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.family = family(address.addr());
    message.header.prefix_len = address.prefix_len();
    message.header.index = index;
    message.attributes =
        vec![AddressAttribute::Local(address.addr()), AddressAttribute::Address(address.addr())];
    message
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

fn route(message: &RouteMessage) -> Option<(u32, HostRoute)> {
    let length = message.header.destination_prefix_length;
    let mut destination = match message.header.address_family {
        AddressFamily::Inet => IpNet::V4(Ipv4Net::new(Ipv4Addr::UNSPECIFIED, length).ok()?),
        _ => IpNet::V6(Ipv6Net::new(Ipv6Addr::UNSPECIFIED, length).ok()?),
    };
    let (mut gateway, mut link, mut metric) = (None, None, 0);
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Destination(address) => destination = IpNet::new(ip(address)?, length).ok()?,
            RouteAttribute::Gateway(address) => gateway = ip(address),
            RouteAttribute::Oif(index) => link = Some(*index),
            RouteAttribute::Priority(priority) => metric = *priority,
            _ => {}
        }
    }
    let on_link = message.header.flags.contains(RouteFlags::Onlink);
    Some((link?, HostRoute { destination, gateway: gateway?, metric, on_link }))
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some(IpAddr::V4(*address)),
        RouteAddress::Inet6(address) => Some(IpAddr::V6(*address)),
        _ => None,
    }
}

fn route_message(index: u32, route: &HostRoute) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = family(route.gateway);
    message.header.destination_prefix_length = route.destination.prefix_len();
    message.header.table = RouteHeader::RT_TABLE_MAIN;
    message.header.protocol = RouteProtocol::Other(NETLINK_PROTOCOL);
    message.header.scope = RouteScope::Universe;
    message.header.kind = RouteType::Unicast;
    if route.on_link {
        message.header.flags.insert(RouteFlags::Onlink);
    }
    message.attributes = vec![
        RouteAttribute::Gateway(route.gateway.into()),
        RouteAttribute::Oif(index),
        RouteAttribute::Priority(route.metric),
    ];
    if route.destination.prefix_len() > 0 {
        message.attributes.push(RouteAttribute::Destination(route.destination.network().into()));
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_of_kernels_have_two_numbers() {
        for (release, expected) in [
            ("5.18.0-1-amd64", Some((5, 18))),
            ("6.1", Some((6, 1))),
            ("5.4.0-rc1", Some((5, 4))),
            ("", None),
            ("x.y", None),
        ] {
            assert_eq!(version(release), expected, "{release}");
        }
    }

    #[test]
    fn an_address_stays_if_others_would_go_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let setting = dir.path().join("eth1.100/promote_secondaries");
        let refusal = keep_others(dir.path(), "eth1.100").unwrap_err().to_string();
        assert!(refusal.contains("promote_secondaries"), "{refusal}");
        fs::create_dir(dir.path().join("eth1.100")).unwrap();
        fs::write(&setting, "0\n").unwrap();
        keep_others(dir.path(), "eth1.100").unwrap();
        assert_eq!(fs::read_to_string(&setting).unwrap(), "1");
        // A file of the kernel that can't be written reads 1 already.
        let fixed = Path::new("/sys/class/net/lo/ifindex");
        if fixed.exists() {
            fs::remove_file(&setting).unwrap();
            std::os::unix::fs::symlink(fixed, &setting).unwrap();
            assert!(fs::write(&setting, "1").is_err());
            keep_others(dir.path(), "eth1.100").unwrap();
        }
    }
}
