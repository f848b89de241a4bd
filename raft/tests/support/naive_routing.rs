//! The model's routes: whose they are.

use std::collections::BTreeMap;

use ipam_api::Code;
use ipam_raft::machine::command::{Allocate, Setting};

use crate::naive::{Held, Model, Spot};

impl Model {
    /// What of a request's routing is whose. Of several that could have a route, it is the one whose interface the
    /// request names first; one that this ADD is about before another.
    pub(crate) fn settings(
        &self,
        wish: &Allocate,
        endpoint: u64,
        given: &[Held],
        along: &[Spot],
        left: &[Spot],
    ) -> Result<BTreeMap<Spot, Setting>, Code> {
        let of_endpoint = |one: &&Held| one.endpoint == endpoint && !left.contains(&one.spot());
        let (taken, others): (Vec<&Held>, Vec<&Held>) =
            self.held.iter().filter(of_endpoint).partition(|one| along.contains(&one.spot()));
        let mut settings: BTreeMap<Spot, Setting> = BTreeMap::new();
        for one in given.iter().chain(taken.iter().copied()) {
            let only = &wish.routing.default_interface;
            let clean = wish.routing.clean.contains(&one.interface)
                || only.as_ref().is_some_and(|only| *only != one.interface);
            settings.insert(one.spot(), Setting { routes: Vec::new(), clean_gateway: clean });
        }
        for route in &wish.routing.routes {
            let could = |one: &&Held| {
                let pool = self.pools.get(&one.pool).expect("it is held");
                self.subnet_of(&pool.intention).cidr.contains(&route.gateway)
            };
            let place = |one: &&Held| {
                let named = wish.interfaces.iter().position(|interface| interface.name == one.interface);
                named.unwrap_or(100)
            };
            let all = given.iter().chain(taken.iter().copied()).chain(others.iter().copied());
            let Some(whose) = all.filter(could).min_by_key(place) else {
                if wish.attachment.is_some() && wish.interfaces.len() == 1 {
                    continue;
                }
                return Err(Code::OutsideSubnet);
            };
            if let Some(setting) = settings.get_mut(&whose.spot()) {
                setting.routes.push(route.clone());
            }
        }
        Ok(settings)
    }
}
