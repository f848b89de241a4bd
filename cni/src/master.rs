//! Addresses of the host's interface that a container is connected to, for `ipam.match_master_subnet`.
//!
//! A configuration for several nodes names pools of several subnets. With this key only pools of the subnets
//! that are on the interface of this node are used.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::Path;

use ipam_api::limits::LINK_ADDRESSES_MAX;
use ipam_api::name::shown;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::SockaddrStorage;
use serde_json::Value;

use crate::config::Network;
use crate::fail::{Failure, TRY_LATER};
use crate::link::link;

/// Key in `ipam`, which Spiderpool has, too.
pub const MATCH_MASTER_SUBNET: &str = "match_master_subnet";
/// Functions of PCI devices. That of a virtual function links to its physical function.
const DEVICES: &str = "/sys/bus/pci/devices";

/// Addresses of the interface, if the configuration limits the pools to its subnets; else none.
///
/// # Errors
/// Code 7 if the configuration names no interface; code 11 while the interface has no address.
pub fn link_addresses(network: &Network) -> Result<Vec<IpAddr>, Failure> {
    if !network.ipam()?.boolean(MATCH_MASTER_SUBNET)?.unwrap_or_default() {
        return Ok(Vec::new());
    }
    let masters = masters(network, Path::new(DEVICES))?;
    let found = getifaddrs().map_err(io::Error::from);
    let found = found.map_err(|error| unknown(&format!("the interfaces can't be read: {error}")))?;
    let mut addresses = Vec::new();
    for one in found {
        // IPv4 addresses may have a label, such as `eth0:1`. A name has no colon.
        let name = one.interface_name.split(':').next().unwrap_or_default();
        let address = one.address.as_ref().and_then(ip).filter(|address| !is_everywhere(*address));
        addresses.extend(address.filter(|_| masters.iter().any(|master| master == name)));
    }
    addresses.truncate(LINK_ADDRESSES_MAX);
    if addresses.is_empty() {
        let masters = masters.iter().map(|name| shown(name)).collect::<Vec<_>>().join(", ");
        return Err(unknown(&format!("interface {masters} of the host has no address")));
    }
    Ok(addresses)
}

/// Names of the host's interface: from the main plugin's configuration, or of the physical function of the
/// configured virtual function.
fn masters(network: &Network, devices: &Path) -> Result<Vec<String>, Failure> {
    let whole = network.whole();
    let is_inside = whole.get("linkInContainer") == Some(&Value::Bool(true));
    if let Some(name) = link(network).map(|name| name.to_string()).filter(|_| !is_inside) {
        return Ok(vec![name]);
    }
    if let Some(name) = whole.text("master")?.filter(|_| !is_inside) {
        return Ok(vec![name.to_owned()]);
    }
    let device = match whole.text("deviceID")? {
        Some(device) => Some(device),
        None => whole.section("runtimeConfig")?.text("deviceID")?,
    };
    let Some(device) = device else {
        let why = "ipam.match_master_subnet needs the host's interface: the main plugin's configuration has \
                   neither master, bridge nor deviceID";
        return Err(Failure::configuration(why));
    };
    if !device.bytes().all(|byte| byte.is_ascii_hexdigit() || b":.".contains(&byte)) || device.contains("..")
    {
        return Err(whole.wrong("deviceID", "must be the address of a PCI device"));
    }
    let directory = devices.join(device).join("physfn/net");
    let names = fs::read_dir(&directory).and_then(|entries| {
        entries.map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned())).collect()
    });
    names.map_err(|error| unknown(&format!("{}: {error}", directory.display())))
}

fn unknown(why: &str) -> Failure {
    let help = "give the interface an address of the pools' subnets, or remove ipam.match_master_subnet";
    Failure::new(TRY_LATER, "the subnets of the host's interface are unknown", format!("{why}; {help}"))
}

fn ip(address: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
    v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
}

/// True for an address of a kind that every interface has.
fn is_everywhere(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::CniVersion;

    fn network(keys: &str) -> Network {
        let document = crate::json::parse(format!(r#"{{"name":"n",{keys}}}"#).as_bytes()).unwrap();
        Network::new(document, CniVersion::LATEST).unwrap()
    }

    #[test]
    fn the_main_plugin_names_the_interface() {
        let devices = tempfile::tempdir().unwrap();
        for name in ["ens1", "ens1_rep"] {
            fs::create_dir_all(devices.path().join("0000:01:00.2/physfn/net").join(name)).unwrap();
        }
        for (keys, expected) in [
            (r#""type":"macvlan","master":"eth1""#, vec!["eth1"]),
            (r#""type":"bridge","bridge":"br0""#, vec!["br0"]),
            (r#""type":"vlan","master":"eth1","vlanId":7"#, vec!["eth1"]),
            (r#""type":"sriov","deviceID":"0000:01:00.2""#, vec!["ens1", "ens1_rep"]),
            (r#""type":"sriov","runtimeConfig":{"deviceID":"0000:01:00.2"}"#, vec!["ens1", "ens1_rep"]),
        ] {
            let mut names = masters(&network(keys), devices.path()).unwrap();
            names.sort();
            assert_eq!(names, expected, "{keys}");
        }
        for (keys, code) in [
            (r#""type":"ptp""#, crate::fail::CONFIGURATION),
            (r#""type":"macvlan","master":"eth1","linkInContainer":true"#, crate::fail::CONFIGURATION),
            (r#""type":"sriov","deviceID":"../../x""#, crate::fail::CONFIGURATION),
            (r#""type":"sriov","deviceID":"..""#, crate::fail::CONFIGURATION),
            (r#""type":"sriov","deviceID":"0000:01:00.3""#, TRY_LATER),
        ] {
            assert_eq!(masters(&network(keys), devices.path()).unwrap_err().code, code, "{keys}");
        }
    }

    #[test]
    fn addresses_are_read_only_where_they_limit_the_pools() {
        let of = |ipam: &str| {
            link_addresses(&network(&format!(r#""type":"macvlan","master":"lo","ipam":{ipam}"#)))
        };
        assert_eq!(of("{}"), Ok(Vec::new()));
        assert_eq!(of(r#"{"match_master_subnet":false}"#), Ok(Vec::new()));
        assert!(of(r#"{"match_master_subnet":true}"#).unwrap().contains(&"127.0.0.1".parse().unwrap()));
        assert_eq!(of(r#"{"match_master_subnet":"yes"}"#).unwrap_err().code, crate::fail::CONFIGURATION);
        let none = network(r#""type":"macvlan","master":"nowhere","ipam":{"match_master_subnet":true}"#);
        let failure = link_addresses(&none).unwrap_err();
        assert_eq!(failure.code, TRY_LATER);
        assert!(failure.details.contains("has no address"), "{}", failure.details);
    }
}
