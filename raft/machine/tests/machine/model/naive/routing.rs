//! The model's gateways and routes: whose they are.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipam_api::{Code, Family};
use ipam_machine::command::{Allocate, PoolSpec, RouteConfig};
use ipnet::IpNet;

use crate::model::naive::{Held, Model, Pool, Spot};

impl Model {
    /// Checks that a pool's gateway and routes fit its subnet, and that no pool allocates a gateway.
    pub(crate) fn check_gateway(&self, pool: &PoolSpec) -> Result<(), Code> {
        let cidr = self.subnet_of(pool).cidr;
        let is_of_family = |address: IpAddr| Family::of(address) == Family::of(cidr.addr());
        if let Some(gateway) = pool.gateway {
            if !is_of_family(gateway) {
                return Err(Code::FamilyMismatch);
            }
            if !cidr.contains(&gateway) {
                return Err(Code::OutsideSubnet);
            }
            if self.is_edge(pool, gateway) {
                return Err(Code::GatewayInRange);
            }
        }
        for route in &pool.routes {
            if !is_of_family(route.destination.addr()) || !is_of_family(route.gateway) {
                return Err(Code::FamilyMismatch);
            }
            if !cidr.contains(&route.gateway) {
                return Err(Code::OutsideSubnet);
            }
        }
        let mut after = self.clone();
        let made = Pool { spec: pool.clone(), cursor: None, automatic: None };
        after.pools.insert(pool.name.clone(), made);
        if after.gives_a_gateway() { Err(Code::Overlap) } else { Ok(()) }
    }

    /// True if some pool allocates the gateway of a pool.
    pub(crate) fn gives_a_gateway(&self) -> bool {
        let network = |pool: &Pool| &self.subnet_of(&pool.spec).network;
        self.pools.values().any(|pool| {
            let mut near = self.pools.values().filter(|other| network(other) == network(pool));
            pool.spec.gateway.is_some_and(|at| near.any(|other| self.allocatable(&other.spec, at)))
        })
    }

    /// The gateway of an address, and its routes by where they lead: what is said last counts.
    pub(crate) fn way_of(&self, held: &Held) -> (Option<IpAddr>, BTreeMap<IpNet, IpAddr>) {
        let pool = &self.pools[&held.pool].spec;
        let subnet = self.subnet_of(pool);
        let routes = subnet.routes.iter().chain(&pool.routes).chain(&held.route_config.routes);
        let routes = routes.map(|route| (route.destination, route.gateway)).collect();
        (pool.gateway.or(subnet.gateway), routes)
    }

    /// Assigns a request's routing to its allocations. Of several possible interfaces the one of this ADD
    /// gets a route, else the first one in the request.
    pub(crate) fn route_configs(
        &self,
        request: &Allocate,
        endpoint: u64,
        given: &[Held],
        reused: &[Spot],
        left: &[Spot],
    ) -> Result<BTreeMap<Spot, RouteConfig>, Code> {
        let of_endpoint = |one: &&Held| one.endpoint == endpoint && !left.contains(&one.spot());
        let (taken, others): (Vec<&Held>, Vec<&Held>) =
            self.held.iter().filter(of_endpoint).partition(|one| reused.contains(&one.spot()));
        let mut route_configs: BTreeMap<Spot, RouteConfig> = BTreeMap::new();
        for one in given.iter().chain(taken.iter().copied()) {
            let only = &request.routing.default_interface;
            let clean = request.routing.clean.contains(&one.interface)
                || only.as_ref().is_some_and(|only| *only != one.interface);
            route_configs.insert(one.spot(), RouteConfig { routes: Vec::new(), clean_gateway: clean });
        }
        for route in &request.routing.routes {
            let could = |one: &&Held| {
                let pool = self.pools.get(&one.pool).expect("it is held");
                self.subnet_of(&pool.spec).cidr.contains(&route.gateway)
            };
            let place = |one: &&Held| {
                let named = request.interfaces.iter().position(|interface| interface.name == one.interface);
                named.unwrap_or(100)
            };
            let all = given.iter().chain(taken.iter().copied()).chain(others.iter().copied());
            let Some(whose) = all.filter(could).min_by_key(place) else {
                if request.attachment.is_some() && request.interfaces.len() == 1 {
                    continue;
                }
                return Err(Code::OutsideSubnet);
            };
            if let Some(route_config) = route_configs.get_mut(&whose.spot()) {
                route_config.routes.push(route.clone());
            }
        }
        Ok(route_configs)
    }
}
