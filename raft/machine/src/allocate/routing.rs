//! Assignment of a request's routes to its allocations, and the part that each allocation stores.

use crate::allocate::choosing::Choosing;
use crate::allocate::pick::Pick;
use crate::command::{Allocate, Cause, Refusal, RouteConfig};
use crate::state::id::{AllocationId, PoolId};
use crate::state::row::Allocation;
use ipam_api::name::InterfaceName;
use ipam_api::resource::Route;
use ipnet::IpNet;
use std::sync::Arc;

/// Routing that is stored with the allocations of a request, in the order of the plan.
#[derive(Debug, Default)]
pub(super) struct RouteConfigs(Vec<(Which, RouteConfig)>);

impl RouteConfigs {
    /// Routing of an allocation; an empty one isn't stored.
    pub(super) fn of(&self, which: Which) -> Option<Arc<RouteConfig>> {
        let (_, route_config) = self.0.iter().find(|(other, _)| *other == which)?;
        (*route_config != RouteConfig::default()).then(|| Arc::new(route_config.clone()))
    }
}

/// Existing allocation, or the index of a planned one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    Pick(usize),
    Held(AllocationId),
}

impl<'a> Choosing<'a> {
    /// Assigns a request's routing to its allocations. A route belongs to the first interface of the request
    /// whose subnet contains the gateway, else to another interface of the endpoint; allocations in `left`
    /// don't count.
    pub(super) fn route_configs(
        self,
        picks: &[Pick],
        reused: &[AllocationId],
        left: &[AllocationId],
    ) -> Result<RouteConfigs, Refusal> {
        let (request, routing) = (self.request, &self.request.routing);
        if routing.is_empty() {
            return Ok(RouteConfigs::default());
        }
        let clean =
            |interface| RouteConfig { routes: Vec::new(), clean_gateway: routing.is_clean(interface) };
        let interface_of = |id: AllocationId| self.state.allocations.get(id).map(|row| &row.interface);
        let new = picks.iter().enumerate().map(|(i, pick)| (Which::Pick(i), clean(&pick.interface)));
        let held = reused.iter().filter_map(|id| Some((Which::Held(*id), clean(interface_of(*id)?))));
        let mut route_configs = RouteConfigs(new.chain(held).collect());
        if routing.routes.is_empty() {
            return Ok(route_configs);
        }
        let mut places: Vec<(&InterfaceName, IpNet, Which)> = Vec::new();
        for (i, pick) in picks.iter().enumerate() {
            places.extend(self.cidr_of(pick.pool).map(|cidr| (&pick.interface, cidr, Which::Pick(i))));
        }
        let others = self.row.into_iter().flat_map(|row| row.allocations.iter().copied());
        let others = others.filter(|id| !reused.contains(id) && !left.contains(id));
        for id in reused.iter().copied().chain(others) {
            let Some(held) = self.state.allocations.get(id) else { continue };
            places.extend(self.cidr_of(held.pool).map(|cidr| (&held.interface, cidr, Which::Held(id))));
        }
        let rank = |name: &InterfaceName| request.interfaces.iter().position(|one| one.name == *name);
        places.sort_by_key(|(name, ..)| rank(name).unwrap_or(usize::MAX));
        for route in &routing.routes {
            let (.., which) = match places.iter().find(|(_, cidr, _)| cidr.contains(&route.gateway)) {
                Some(found) => found,
                None if request.knows_own_interface_only() => continue,
                None => return Err(outside_all_subnets(request, route)),
            };
            // Routing of another interface is repeated by that interface's ADD.
            if let Some((_, route_config)) = route_configs.0.iter_mut().find(|(other, _)| other == which) {
                route_config.routes.push(route.clone());
            }
        }
        Ok(route_configs)
    }

    fn cidr_of(self, pool: PoolId) -> Option<IpNet> {
        let pool = self.state.pools.get(pool)?;
        self.state.subnets.get(pool.subnet).map(|subnet| subnet.spec.cidr)
    }
}

impl Allocation {
    /// Routes of the allocation: the shared routes of its pool, overridden by its own.
    pub(crate) fn routes(&self, shared: Vec<Route>) -> Vec<Route> {
        let own = self.route_config.as_ref().map_or(&[][..], |route_config| &route_config.routes);
        over(shared, own)
    }
}

/// Routes of all addresses of a pool: those of the subnet, overridden by those of the pool.
pub(crate) fn shared_routes(of_subnet: &[Route], of_pool: &[Route]) -> Vec<Route> {
    over(of_subnet.to_vec(), of_pool)
}

/// Overrides routes by special ones with the same destination, and appends the special ones.
fn over(mut routes: Vec<Route>, special: &[Route]) -> Vec<Route> {
    routes.retain(|route| special.iter().all(|other| other.destination != route.destination));
    routes.extend_from_slice(special);
    routes
}

fn outside_all_subnets(request: &Allocate, route: &Route) -> Refusal {
    let (gateway, destination) = (route.gateway, route.destination);
    Cause::RouteInNoSubnet { gateway, destination, endpoint: request.endpoint.clone() }.into()
}
