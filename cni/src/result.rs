//! Result of an ADD, in the format of each version of the specification.
//!
//! An address plugin reports no interfaces: the main plugin makes them.

use std::net::IpAddr;

use ipam_api::Family;
use ipam_api::problem::{Code, Problem};
use ipam_api::resource::GivenAddress;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::Serialize;
use serde_with::skip_serializing_none;

use crate::fail::{Failure, lines};
use crate::version::CniVersion;

/// Result since version 0.3.0.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed<'a> {
    cni_version: CniVersion,
    ips: Vec<Ip>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    routes: Vec<Route>,
    dns: &'a Dns,
}

#[skip_serializing_none]
#[derive(Debug, Serialize)]
struct Ip {
    /// IP version; removed in version 1.0.0.
    version: Option<&'static str>,
    address: IpNet,
    gateway: Option<IpAddr>,
}

/// Result of versions 0.1.0 and 0.2.0: at most one address of each family.
#[skip_serializing_none]
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct OneOfEach<'a> {
    cni_version: CniVersion,
    ip4: Option<Single>,
    ip6: Option<Single>,
    dns: &'a Dns,
}

#[skip_serializing_none]
#[derive(Debug, Serialize)]
struct Single {
    ip: IpNet,
    gateway: Option<IpAddr>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    routes: Vec<Route>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Route {
    dst: IpNet,
    gw: IpAddr,
    /// MTU of the route, since version 1.1.0.
    mtu: Option<u32>,
}

/// Name resolution.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Dns {
    /// Name servers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nameservers: Vec<String>,
    /// The local domain.
    pub domain: Option<String>,
    /// Search list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub search: Vec<String>,
    /// Resolver options.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

/// Prints the allocation of an interface. `dns` comes from the configuration; without it, the name resolution
/// of the subnets applies.
///
/// # Errors
/// Code 999 for an interface without any address, which no main plugin can use; code 7 for more addresses
/// than an old version can express.
pub fn print(version: CniVersion, given: &[GivenAddress], dns: Option<Dns>) -> Result<Vec<u8>, Failure> {
    if given.is_empty() {
        return Err(defect("the server gave the interface no address"));
    }
    let dns = dns.unwrap_or_else(|| merged_dns(given));
    let printed = if version < CniVersion::V030 {
        let addresses: Vec<IpAddr> = given.iter().map(|one| one.address.addr()).collect();
        check_count(version, &addresses)?;
        let (ip4, ip6) = (single(version, given, Family::V4), single(version, given, Family::V6));
        lines(&OneOfEach { cni_version: version, ip4, ip6, dns: &dns })
    } else {
        let ips = given.iter().map(|one| ip(version, one)).collect();
        let all: Vec<&GivenAddress> = given.iter().collect();
        lines(&Listed { cni_version: version, ips, routes: routes(version, &all), dns: &dns })
    };
    printed.map_err(|error| defect(&error.to_string()))
}

/// Refuses more addresses of a family than a version can express.
///
/// # Errors
/// Code 7.
pub fn check_count(version: CniVersion, addresses: &[IpAddr]) -> Result<(), Failure> {
    let several = |family| addresses.iter().filter(|address| Family::of(**address) == family).count() > 1;
    if version < CniVersion::V030 && Family::BOTH.into_iter().any(several) {
        return Err(Failure::configuration(format!(
            "CNI version {version} does not support more than 1 address per family"
        )));
    }
    Ok(())
}

fn ip(version: CniVersion, one: &GivenAddress) -> Ip {
    let family = match Family::of(one.address.addr()) {
        Family::V4 => "4",
        Family::V6 => "6",
    };
    Ip {
        version: Some(family).filter(|_| version < CniVersion::V100),
        address: one.address,
        gateway: one.gateway,
    }
}

fn single(version: CniVersion, given: &[GivenAddress], family: Family) -> Option<Single> {
    let one = given.iter().find(|one| Family::of(one.address.addr()) == family)?;
    Some(Single { ip: one.address, gateway: one.gateway, routes: routes(version, &[one]) })
}

/// Routes of a result, each once: the default route of each family with a gateway, and further routes. Each
/// has its gateway: otherwise, a main plugin would use the gateway of the first address of that family.
fn routes(version: CniVersion, given: &[&GivenAddress]) -> Vec<Route> {
    let mut routes: Vec<Route> = Vec::new();
    let mut add = |route: Route| {
        if !routes.iter().any(|known| known.dst == route.dst) {
            routes.push(route);
        }
    };
    for one in given {
        let mtu = one.mtu.filter(|_| version >= CniVersion::V110);
        let has_default =
            one.clean_gateway || one.routes.iter().any(|route| route.destination.prefix_len() == 0);
        if let Some(gateway) = one.gateway.filter(|_| !has_default) {
            let dst = match Family::of(one.address.addr()) {
                Family::V4 => IpNet::V4(Ipv4Net::default()),
                Family::V6 => IpNet::V6(Ipv6Net::default()),
            };
            add(Route { dst, gw: gateway, mtu });
        }
        for route in &one.routes {
            add(Route { dst: route.destination, gw: route.gateway, mtu });
        }
    }
    routes
}

fn merged_dns(given: &[GivenAddress]) -> Dns {
    let mut merged = Dns::default();
    let extend = |list: &mut Vec<String>, more: &mut dyn Iterator<Item = String>| {
        for item in more {
            if !list.contains(&item) {
                list.push(item);
            }
        }
    };
    for one in given {
        extend(&mut merged.nameservers, &mut one.dns.nameservers.iter().map(ToString::to_string));
        extend(&mut merged.search, &mut one.dns.search.iter().cloned());
        extend(&mut merged.options, &mut one.dns.options.iter().cloned());
        merged.domain = merged.domain.or_else(|| one.dns.domain.clone());
    }
    merged
}

/// Failure for an answer that ipamd must never return.
pub(crate) fn defect(detail: &str) -> Failure {
    Problem::new(Code::Internal, detail).into()
}
