//! Whose the routes of a request are, and what is kept of them with each allocation.

use std::sync::Arc;

use ipam_api::Family;
use ipam_api::limits::ROUTES_MAX;
use ipam_api::name::InterfaceName;
use ipam_api::resource::Route;
use ipnet::IpNet;

use crate::allocate::pick::Pick;
use crate::command::validate::{check_host_bits, within};
use crate::command::{Allocate, Cause, Refusal, Routing, Setting};
use crate::state::State;
use crate::state::id::{AllocationId, PoolId};
use crate::state::row::{Allocation, Endpoint};
use crate::value::cause::Counted;

impl Routing {
    /// Refuses what no state could accept. Default routes are welcome, unlike in subnets.
    pub(crate) fn check(&self, wish: &Allocate) -> Result<(), Refusal> {
        within(Counted::Routes, self.routes.len(), ROUTES_MAX)?;
        for (i, route) in self.routes.iter().enumerate() {
            let (destination, gateway) = (route.destination, route.gateway);
            check_host_bits(destination)?;
            if Family::of(route.destination.addr()) != Family::of(route.gateway) {
                return Err(Cause::RouteMixed { destination, gateway }.into());
            }
            if self.routes.iter().take(i).any(|other| other.destination == route.destination) {
                return Err(Cause::RouteTwice { destination }.into());
            }
        }
        let of_another = self.default_interface.as_ref().filter(|_| !wish.knows_own_interface_only());
        let mut named = self.clean.iter().chain(of_another);
        let is_stranger = |name: &&InterfaceName| wish.interfaces.iter().all(|one| one.name != **name);
        match named.find(is_stranger) {
            None => Ok(()),
            Some(name) => Err(Cause::DefaultRouteElsewhere { interface: name.clone() }.into()),
        }
    }
}

impl Allocate {
    /// Whether it is an ADD that names no other interfaces: there may be some, and what is said of all of them is said
    /// in each of their ADDs.
    fn knows_own_interface_only(&self) -> bool {
        self.attachment.is_some() && self.interfaces.len() == 1
    }
}

/// What is kept with the allocations of a request, in the order in which they are planned.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    picks: Vec<Setting>,
    along: Vec<(AllocationId, Setting)>,
}

impl Settings {
    pub(crate) fn of_pick(&self, place: usize) -> Option<Arc<Setting>> {
        shared(self.picks.get(place))
    }

    pub(crate) fn of_allocation(&self, id: AllocationId) -> Option<Arc<Setting>> {
        shared(self.along.iter().find(|(other, _)| *other == id).map(|(_, setting)| setting))
    }
}

/// What says nothing takes no room.
fn shared(setting: Option<&Setting>) -> Option<Arc<Setting>> {
    setting.filter(|setting| **setting != Setting::default()).cloned().map(Arc::new)
}

/// An allocation that there is or will be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    Pick(usize),
    Held(AllocationId),
}

impl State {
    /// What of a request's routing belongs to which of its allocations. Each route is of the first of its interfaces in
    /// whose subnet the gateway is, else of another one that the endpoint has; `left` it has no longer.
    pub(crate) fn settings(
        &self,
        wish: &Allocate,
        row: Option<&Endpoint>,
        picks: &[Pick],
        along: &[AllocationId],
        left: &[AllocationId],
    ) -> Result<Settings, Refusal> {
        let routing = &wish.routing;
        if routing.is_empty() {
            return Ok(Settings::default());
        }
        let clean = |interface| Setting { routes: Vec::new(), clean_gateway: routing.is_clean(interface) };
        let interface_of = |id: AllocationId| self.allocations.get(id).map(|row| &row.interface);
        let mut settings = Settings {
            picks: picks.iter().map(|pick| clean(&pick.interface)).collect(),
            along: along.iter().filter_map(|id| Some((*id, clean(interface_of(*id)?)))).collect(),
        };
        if routing.routes.is_empty() {
            return Ok(settings);
        }
        let mut places: Vec<(&InterfaceName, IpNet, Which)> = Vec::new();
        for (i, pick) in picks.iter().enumerate() {
            places.extend(self.cidr_of(pick.pool).map(|cidr| (&pick.interface, cidr, Which::Pick(i))));
        }
        let others = row.into_iter().flat_map(|row| row.allocations.iter().copied());
        let others = others.filter(|id| !along.contains(id) && !left.contains(id));
        for id in along.iter().copied().chain(others) {
            let Some(held) = self.allocations.get(id) else { continue };
            places.extend(self.cidr_of(held.pool).map(|cidr| (&held.interface, cidr, Which::Held(id))));
        }
        let rank = |name: &InterfaceName| wish.interfaces.iter().position(|one| one.name == *name);
        places.sort_by_key(|(name, ..)| rank(name).unwrap_or(usize::MAX));
        for route in &routing.routes {
            let (.., which) = match places.iter().find(|(_, cidr, _)| cidr.contains(&route.gateway)) {
                Some(found) => found,
                None if wish.knows_own_interface_only() => continue,
                None => return Err(in_nobodys_subnet(wish, route)),
            };
            let setting = match which {
                Which::Pick(place) => settings.picks.get_mut(*place),
                Which::Held(id) => {
                    let mut all = settings.along.iter_mut();
                    all.find(|(other, _)| other == id).map(|(_, setting)| setting)
                }
            };
            // Another ADD's are said again by that one.
            if let Some(setting) = setting {
                setting.routes.push(route.clone());
            }
        }
        Ok(settings)
    }

    fn cidr_of(&self, pool: PoolId) -> Option<IpNet> {
        let pool = self.pools.get(pool)?;
        self.subnets.get(pool.subnet).map(|subnet| subnet.intention.cidr)
    }
}

impl Allocation {
    /// Its routes: the subnet's, the pool's over them, and its own over both.
    pub(crate) fn routes(&self, of_subnet: &[Route], of_pool: &[Route]) -> Vec<Route> {
        let own = self.setting.as_ref().map_or(&[][..], |setting| &setting.routes);
        over(over(of_subnet.to_vec(), of_pool), own)
    }
}

/// Routes with more special ones, which stand for any to the same destination.
fn over(mut routes: Vec<Route>, special: &[Route]) -> Vec<Route> {
    routes.retain(|route| special.iter().all(|other| other.destination != route.destination));
    routes.extend_from_slice(special);
    routes
}

fn in_nobodys_subnet(wish: &Allocate, route: &Route) -> Refusal {
    let (gateway, destination) = (route.gateway, route.destination);
    Cause::RouteInNoSubnet { gateway, destination, endpoint: wish.endpoint.clone() }.into()
}
