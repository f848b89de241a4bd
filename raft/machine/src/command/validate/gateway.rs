//! Checks of gateways and routes.

use std::net::IpAddr;

use ipam_api::Family;
use ipam_api::limits::ROUTES_MAX;
use ipam_api::resource::Route;
use ipnet::IpNet;

use crate::command::validate::{check_host_bits, within};
use crate::value::cause::Counted;
use crate::value::shape::edges;
use crate::value::{Cause, Refusal, refuse_if};

/// Refuses a gateway that no host of a subnet could have.
pub(crate) fn check_gateway(cidr: IpNet, gateway: IpAddr) -> Result<(), Refusal> {
    refuse_if(Family::of(gateway) != Family::of(cidr.addr()), || Cause::GatewayFamily { gateway, cidr })?;
    if is_link_local(gateway) {
        return Ok(());
    }
    refuse_if(!cidr.contains(&gateway), || Cause::GatewayOutside { gateway, cidr })?;
    refuse_if(edges(cidr).contains(&gateway), || Cause::GatewayOnEdge { gateway, cidr })
}

/// Refuses routes that hosts of a subnet can't have.
pub(crate) fn check_routes(cidr: IpNet, routes: &[Route]) -> Result<(), Refusal> {
    within(Counted::Routes, routes.len(), ROUTES_MAX)?;
    for (i, route) in routes.iter().enumerate() {
        let (destination, gateway) = (route.destination, route.gateway);
        check_host_bits(destination)?;
        let family = Family::of(cidr.addr());
        if Family::of(route.destination.addr()) != family || Family::of(route.gateway) != family {
            return Err(Cause::RouteFamily { destination, family }.into());
        }
        refuse_if(route.destination.prefix_len() == 0, || Cause::DefaultRoute)?;
        if !cidr.contains(&route.gateway) && !is_link_local(route.gateway) {
            return Err(Cause::RouteOutside { gateway, cidr }.into());
        }
        if routes.iter().take(i).any(|other| other.destination == route.destination) {
            return Err(Cause::RouteTwice { destination }.into());
        }
    }
    Ok(())
}

/// Returns true for fe80::/10 and 169.254.0.0/16, which a router may use on any subnet.
pub(crate) fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}
