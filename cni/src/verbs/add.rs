//! ADD: addresses for one interface, all or none. A repetition gets the same answer.

use std::net::IpAddr;

use ipam_api::brand::HEADER_ANNOUNCE;
use ipam_api::client::Call;
use ipam_api::request::{AllocateRequest, Allocated, InterfaceRequest, Started};

use super::attachment;
use crate::annotations::annotations;
use crate::announce::{announce, mac_behind_bridge};
use crate::arguments::Arguments;
use crate::ask::Ask;
use crate::config::{IPV4_POOLS, IPV6_POOLS, Network, SUBNETS};
use crate::environment::Environment;
use crate::fail::Failure;
use crate::interfaces::{check_default_route, interfaces};
use crate::master::link_addresses;
use crate::result::{self, defect};
use crate::routing::{clean_gateway, default_route_interface, routes};

/// Allocates addresses and prints them.
///
/// # Errors
/// The reason of the failure.
pub async fn add(
    environment: &Environment,
    network: &Network,
    started: Option<Started>,
) -> Result<Vec<u8>, Failure> {
    let request = request(environment, network, started)?;
    let dns = network.dns()?;
    let ask = Ask::new(environment, network)?;
    let interface = &environment.container()?.interface;
    let mut call = Call::post("/v1/allocations").json(&request)?.repeatable();
    if let Some(mac) = mac_behind_bridge(network, &environment.network_namespace, interface) {
        call = call.header(HEADER_ANNOUNCE, &mac.to_string())?;
    }
    let allocated: Allocated = ask.call(call).await?;
    let given = allocated
        .interfaces
        .iter()
        .find(|given| given.name == *interface)
        .ok_or_else(|| defect("the server's answer lacks the interface"))?;
    let output = result::print(network.version, &given.addresses, dns)?;
    if given.addresses.iter().any(|given| given.address.addr().is_ipv6()) {
        announce(&environment.network_namespace, interface);
    }
    Ok(output)
}

/// Request of an ADD.
///
/// # Errors
/// Codes 4 and 7, for wrong arguments and configurations.
pub fn request(
    environment: &Environment,
    network: &Network,
    started: Option<Started>,
) -> Result<AllocateRequest, Failure> {
    let home = network.home()?;
    let container = environment.container()?;
    let arguments = Arguments::parse(&environment.arguments)?;
    let controller = network.controller()?;
    let (endpoint, uid) = arguments.endpoint(&home.realm, &home.node, &container.id, controller.as_ref());
    let mut addresses: Vec<IpAddr> = Vec::new();
    for address in arguments.addresses.into_iter().chain(network.addresses()?) {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    result::check_count(network.version, &addresses)?;
    let own = InterfaceRequest {
        subnets: network.requested(SUBNETS)?,
        ipv4_pools: network.requested(IPV4_POOLS[0])?,
        ipv6_pools: network.requested(IPV6_POOLS[0])?,
        default_ipv4_pools: network.pools(IPV4_POOLS)?,
        default_ipv6_pools: network.pools(IPV6_POOLS)?,
        addresses,
        mac: network.mac()?.or(arguments.mac),
        clean_gateway: clean_gateway(network)?,
        link_addresses: link_addresses(network)?,
        ..InterfaceRequest::blank(container.interface.clone())
    };
    let interfaces = interfaces(network, own)?;
    let default_route_interface = default_route_interface(network)?;
    check_default_route(network, &interfaces, default_route_interface.as_ref())?;
    Ok(AllocateRequest {
        uid,
        labels: network.labels()?,
        node: Some(home.node.clone()),
        attachment: Some(attachment(&home, network, container)),
        controller,
        sticky: network.sticky()?,
        scale_down: network.scale_down()?,
        replicas: network.replicas()?,
        automatic_pool: network.automatic_pool()?,
        interfaces,
        annotations: annotations(network)?,
        routes: routes(network)?,
        default_route_interface,
        started,
        ..AllocateRequest::blank(endpoint)
    })
}
