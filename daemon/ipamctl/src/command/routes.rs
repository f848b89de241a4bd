//! Routes on the command line, and changes of route lists.

use ipam_api::address::{parse_address, parse_cidr};
use ipam_api::resource::Route;
use ipnet::IpNet;

use crate::command::metadata::check_apart;
use crate::output::error::Failure;

/// Adds routes; a route replaces an existing route with the same destination.
pub(crate) fn add_routes(routes: &mut Vec<Route>, more: &[Route]) {
    for route in more {
        routes.retain(|known| known.destination != route.destination);
        routes.push(route.clone());
    }
}

/// Refuses routes that are both added and removed.
pub(crate) fn check_routes(routes: &[Route], gone: &[IpNet]) -> Result<(), Failure> {
    let added: Vec<IpNet> = routes.iter().map(|route| route.destination).collect();
    check_apart(("--route", &added), ("--remove-route", gone), PartialEq::eq)
}

/// Writes `10.99.0.0/16=10.10.0.2`.
pub(crate) fn route(route: &Route) -> String {
    format!("{}={}", route.destination, route.gateway)
}

/// Reads `10.99.0.0/16=10.10.0.2`.
pub(crate) fn parse_route(text: &str) -> Result<Route, String> {
    let (destination, gateway) = text
        .split_once('=')
        .ok_or_else(|| format!("{} is not of the form destination=gateway", ipam_api::name::shown(text)))?;
    Ok(Route {
        destination: parse_cidr(destination).map_err(|problem| problem.detail)?,
        gateway: parse_address(gateway).map_err(|problem| problem.detail)?,
    })
}
