//! The model's own way with pools of applications: every address of a subnet is looked at, every time.

use std::net::IpAddr;

use ipam_api::address::AddressRange;
use ipam_api::limits::{AUTOMATIC_MAX_SIZE_DEFAULT, COOLING_MS_DEFAULT};
use ipam_api::name::{InterfaceName, Name};
use ipam_api::resource::PoolSize;
use ipam_api::{Code, Family};
use ipam_machine::command::{Allocate, EndController, InterfaceRequest, PoolSpec, ScaleController};
use ipam_machine::model::{Automatic, AutomaticStanding};

use crate::model::naive::change::runs;
use crate::model::naive::{Held, Model, Pool, Reply, all_of};

pub(crate) fn wanted(automatic: &Automatic) -> usize {
    let count = match automatic.size {
        PoolSize::Fixed(count) => count,
        PoolSize::Flexible(more) => automatic.replicas + more,
    };
    usize::try_from(count.max(1)).unwrap()
}

impl Model {
    /// True if the pool isn't automatic, or is the endpoint's application's.
    pub(crate) fn is_for(pool: &Pool, request: &Allocate) -> bool {
        let Some(automatic) = &pool.automatic else { return true };
        let own = &automatic.controller;
        (&automatic.realm, &automatic.namespace) == (&request.endpoint.realm, &request.endpoint.namespace)
            && request.stickiness.controller.as_ref().is_some_and(|other| {
                (&own.group, &own.kind, &own.name) == (&other.group, &other.kind, &other.name)
            })
    }

    fn is_of_family(&self, subnet: &Name, family: Family) -> bool {
        self.subnets.get(subnet).is_some_and(|row| Family::of(row.cidr.addr()) == family)
    }

    /// The subnet that an application's pool of a family is cut from.
    fn own_subnet(&self, request: &InterfaceRequest, family: Family) -> Result<Option<Name>, Code> {
        if request.subnets.iter().any(|name| !self.subnets.contains_key(name)) {
            return Err(Code::NotFound);
        }
        Ok(request.subnets.iter().find(|name| self.is_of_family(name, family)).cloned())
    }

    /// An application's pools for an interface, the oldest first.
    fn own_pools(&self, all: &Allocate, interface: &InterfaceName, family: Family) -> Vec<Name> {
        let of = |name: &&Name| {
            let pool = &self.pools[*name];
            let Some(automatic) = &pool.automatic else { return false };
            automatic.interface == *interface
                && Model::is_for(pool, all)
                && self.is_of_family(&pool.spec.subnet, family)
        };
        self.made.iter().filter(of).cloned().collect()
    }

    fn present(
        &self,
        all: &Allocate,
        interface: &InterfaceName,
        family: Family,
        subnet: &Name,
    ) -> Option<Name> {
        let mut there = self.own_pools(all, interface, family);
        there.retain(|name| self.pools[name].spec.subnet == *subnet);
        let lasts = |name: &&Name| !self.pools[*name].spec.terminating;
        let left = |name: &&Name| {
            let automatic = self.pools[*name].automatic.as_ref();
            automatic.is_some_and(|automatic| automatic.standing == AutomaticStanding::Elsewhere)
        };
        there.iter().rev().find(lasts).or(there.iter().rev().find(left)).cloned()
    }

    pub(crate) fn own_pool(
        &self,
        all: &Allocate,
        request: &InterfaceRequest,
        family: Family,
    ) -> Result<Option<&Pool>, Code> {
        let Some(subnet) = self.own_subnet(request, family)? else { return Ok(None) };
        Ok(self.present(all, &request.name, family, &subnet).and_then(|name| self.pools.get(&name)))
    }

    /// Unassigned addresses of a subnet that hosts may have.
    fn unassigned(&self, subnet: &Name) -> Vec<IpAddr> {
        let row = &self.subnets[subnet];
        let of_subnet = || self.pools.values().filter(|pool| pool.spec.subnet == *subnet);
        let whole = PoolSpec { subnet: subnet.clone(), ..PoolSpec::default() };
        let gateways: Vec<_> = of_subnet().filter_map(|pool| pool.spec.gateway).collect();
        let meets = |list: &[AddressRange], address: IpAddr| {
            list.iter().any(|range| range.contains(&AddressRange::single(address)))
        };
        let allows = |address: &IpAddr| {
            row.automatic.as_ref().is_some_and(|rules| {
                (rules.ranges.is_empty() || meets(&rules.ranges, *address))
                    && !meets(&rules.exclude, *address)
            })
        };
        let is_unassigned = |address: &IpAddr| {
            allows(address)
                && self.allocatable(&whole, *address)
                && !gateways.contains(address)
                && !of_subnet().any(|pool| self.has(&pool.spec, *address))
                && !self.is_reserved(&row.network, *address)
        };
        all_of(row.cidr).filter(is_unassigned).collect()
    }

    /// Addresses that one pool of a subnet may have.
    fn most(&self, subnet: &Name) -> usize {
        let rules = self.subnets[subnet].automatic.as_ref();
        rules
            .map_or(0, |rules| usize::try_from(rules.max_size.unwrap_or(AUTOMATIC_MAX_SIZE_DEFAULT)).unwrap())
    }

    pub(crate) fn usable(&self, pool: &PoolSpec) -> usize {
        ["allocated", "quarantined", "cooling", "free"]
            .iter()
            .map(|state| self.in_state(pool, state).len())
            .sum()
    }

    /// Makes, changes and leaves pools as a request says. Those that may have too many addresses then.
    pub(crate) fn make_pools(&mut self, all: &Allocate) -> Result<Vec<Name>, Code> {
        let Some(said) = all.automatic_pool else { return Ok(Vec::new()) };
        let before = self.clone();
        let mut used = Vec::new();
        let mut planned: Vec<IpAddr> = Vec::new();
        let mut rooms = Family::BOTH.map(|family| {
            let (realm, namespace) = (&all.endpoint.realm, &all.endpoint.namespace);
            let controller = all.stickiness.controller.as_ref().expect("it was looked at");
            self.room_for_pools(realm, namespace, controller, family)
        });
        for request in all.interfaces.iter().filter(|request| !request.subnets.is_empty()) {
            let families = Family::BOTH.into_iter();
            for family in families.filter(|one| request.families.is_empty() || request.families.contains(one))
            {
                let Some(subnet) = before.own_subnet(request, family)? else { continue };
                let present = before.present(all, &request.name, family, &subnet);
                let room = &mut rooms[usize::from(family == Family::V6)];
                for name in before.own_pools(all, &request.name, family) {
                    let pool = &before.pools[&name];
                    let lasts = Some(&name) != present.as_ref() && !pool.spec.terminating;
                    let is_empty = before.in_state(&pool.spec, "allocated").is_empty();
                    if lasts && is_empty && *room != usize::MAX {
                        *room += before.owned_by(pool).len();
                    }
                }
                let mut unassigned = before.unassigned(&subnet);
                unassigned.retain(|address| !planned.contains(address));
                match &present {
                    Some(name) => {
                        let mut pool = before.pools[name].clone();
                        let automatic = pool.automatic.as_mut().expect("it is automatic");
                        (automatic.size, automatic.replicas) = (said.size, said.replicas);
                        automatic.standing = AutomaticStanding::Present;
                        let uid = all.stickiness.controller.as_ref().and_then(|one| one.uid.clone());
                        automatic.controller.uid = uid.or(automatic.controller.uid.take());
                        let missing = before.most(&subnet).min(wanted(automatic));
                        let missing = missing.saturating_sub(before.usable(&pool.spec));
                        unassigned.truncate(missing.min(*room));
                        *room -= if *room == usize::MAX { 0 } else { unassigned.len() };
                        planned.extend(&unassigned);
                        (pool.spec.reclaim, pool.spec.terminating) = (Some(said.reclaim), false);
                        self.pools.insert(name.clone(), pool);
                        self.enlarge(name, &unassigned);
                        used.push(name.clone());
                    }
                    None => {
                        let automatic = Automatic {
                            realm: all.endpoint.realm.clone(),
                            namespace: all.endpoint.namespace.clone(),
                            controller: all.stickiness.controller.clone().expect("it was looked at"),
                            interface: request.name.clone(),
                            size: said.size,
                            replicas: said.replicas,
                            standing: AutomaticStanding::Present,
                            created_by: None,
                        };
                        if before.subnets[&subnet].automatic.is_none() {
                            return Err(Code::Forbidden);
                        }
                        if wanted(&automatic) > before.most(&subnet) {
                            return Err(Code::LimitExceeded);
                        }
                        if wanted(&automatic) > *room {
                            return Err(Code::QuotaExceeded);
                        }
                        if unassigned.len() < wanted(&automatic) {
                            return Err(Code::PoolExhausted);
                        }
                        unassigned.truncate(wanted(&automatic));
                        *room -= if *room == usize::MAX { 0 } else { unassigned.len() };
                        planned.extend(&unassigned);
                        // What is refused in the end is never told.
                        let mut untold = (0..).map(|i| Name::new(&format!("auto-untold-{i}")).unwrap());
                        let untold = untold.find(|name| !self.pools.contains_key(name)).unwrap();
                        let name = self.told.pop_front().unwrap_or_else(|| untold.clone());
                        let version = if family == Family::V4 { 4 } else { 6 };
                        let begin = format!("auto{version}-{}-{}-", automatic.controller.name, request.name);
                        assert!(name == untold || name.as_str().starts_with(&begin));
                        let spec = PoolSpec {
                            ranges: runs(unassigned.into_iter()),
                            name: name.clone(),
                            subnet: subnet.clone(),
                            cooling_ms: COOLING_MS_DEFAULT,
                            reclaim: Some(said.reclaim),
                            ..PoolSpec::default()
                        };
                        let made = Pool { spec, cursor: None, automatic: Some(automatic) };
                        self.pools.insert(name.clone(), made);
                        self.made.push(name);
                    }
                }
                for name in before.own_pools(all, &request.name, family) {
                    if Some(&name) != present.as_ref() && !before.pools[&name].spec.terminating {
                        self.leave(&name, AutomaticStanding::Elsewhere);
                    }
                }
            }
        }
        Ok(used)
    }

    /// A repeated request says once more how large its application's pools are.
    pub(crate) fn resize_pools(&mut self, all: &Allocate, given: &[Held]) {
        let (Some(said), Some(by)) = (all.automatic_pool, &all.stickiness.controller) else { return };
        for request in &all.interfaces {
            for family in Family::BOTH {
                let is_omitted = !request.families.is_empty() && !request.families.contains(&family);
                let Ok(Some(subnet)) = self.own_subnet(request, family) else { continue };
                let Some(name) = self.present(all, &request.name, family, &subnet) else { continue };
                let mut pool = self.pools[&name].clone();
                let own = pool.automatic.as_mut().expect("it is automatic");
                let other_uid =
                    own.controller.uid.is_some() && by.uid.is_some() && own.controller.uid != by.uid;
                let is_past = pool.spec.terminating || own.standing != AutomaticStanding::Present;
                let gave = given.iter().any(|one| one.pool == name);
                if is_omitted || other_uid || is_past || !gave {
                    continue;
                }
                own.controller.uid = by.uid.clone().or(own.controller.uid.take());
                (own.size, own.replicas) = (said.size, said.replicas);
                let own = own.clone();
                pool.spec.reclaim = Some(said.reclaim);
                self.pools.insert(name.clone(), pool);
                let usable = self.usable(&self.pools[&name].spec);
                let mut more = self.unassigned(&subnet);
                let room = self.room_for_pools(&own.realm, &own.namespace, &own.controller, family);
                let most = wanted(&own).min(self.most(&subnet));
                more.truncate(most.saturating_sub(usable).min(room));
                self.enlarge(&name, &more);
                self.trim(&[name]);
            }
        }
    }

    fn enlarge(&mut self, name: &Name, more: &[IpAddr]) {
        let pool = &self.pools[name].spec;
        let kept = |address: &IpAddr| more.contains(address) || self.has(pool, *address);
        let ranges = runs(all_of(self.subnet_of(pool).cidr).filter(kept));
        self.pools.get_mut(name).expect("it is there").spec.ranges = ranges;
    }

    /// Takes the highest of their free addresses from pools that have too many.
    pub(crate) fn trim(&mut self, names: &[Name]) {
        for name in names {
            let Some(pool) = self.pools.get(name) else { continue };
            let spec = &pool.spec;
            let mut free = self.in_state(spec, "free");
            free.sort();
            let wanted = wanted(pool.automatic.as_ref().expect("it is automatic"));
            let excess = self.usable(spec).saturating_sub(wanted);
            let less: Vec<IpAddr> = free.into_iter().rev().take(excess).collect();
            let kept = |address: &IpAddr| self.has(spec, *address) && !less.contains(address);
            let ranges = runs(all_of(self.subnet_of(spec).cidr).filter(kept));
            self.pools.get_mut(name).expect("it is there").spec.ranges = ranges;
        }
    }

    fn leave(&mut self, name: &Name, standing: AutomaticStanding) {
        let pool = self.pools.get_mut(name).expect("it is there");
        pool.spec.terminating = true;
        pool.automatic.as_mut().expect("it is automatic").standing = standing;
        self.drop_if_drained(name);
    }

    /// An address that is free now leaves a pool that has too many.
    pub(crate) fn shed(&mut self, name: &Name, address: IpAddr) {
        let Some(pool) = self.pools.get(name) else { return };
        let Some(automatic) = pool.automatic.as_ref().filter(|_| !pool.spec.terminating) else { return };
        let is_free = self.has(&pool.spec, address) && self.state_of(&pool.spec, address) == "free";
        if !is_free || self.usable(&pool.spec) <= wanted(automatic) {
            return;
        }
        let cidr = self.subnet_of(&pool.spec).cidr;
        let left = all_of(cidr).filter(|one| *one != address && self.has(&pool.spec, *one));
        let ranges = runs(left);
        self.pools.get_mut(name).expect("it is there").spec.ranges = ranges;
    }

    fn touched(&self, scale: &ScaleController) -> Vec<Name> {
        let of = |name: &&Name| {
            let Some(automatic) = &self.pools[*name].automatic else { return false };
            let (one, other) = (&automatic.controller, &scale.controller);
            (&automatic.realm, &automatic.namespace) == (&scale.realm, &scale.namespace)
                && (&one.group, &one.kind, &one.name) == (&other.group, &other.kind, &other.name)
                && (one.uid.is_none() || other.uid.is_none() || one.uid == other.uid)
                && !self.pools[*name].spec.terminating
        };
        self.made.iter().filter(of).cloned().collect()
    }

    pub(crate) fn scale_pools(&mut self, scale: &ScaleController) {
        for name in self.touched(scale) {
            let pool = self.pools.get_mut(&name).expect("it is there");
            let automatic = pool.automatic.as_mut().expect("it is automatic");
            if automatic.standing != AutomaticStanding::Present {
                continue;
            }
            automatic.replicas = scale.replicas;
            let (wanted, spec) = (wanted(automatic), pool.spec.clone());
            let own = automatic.clone();
            let mut more = self.unassigned(&spec.subnet);
            let family = Family::of(self.subnet_of(&spec).cidr.addr());
            let room = self.room_for_pools(&own.realm, &own.namespace, &own.controller, family);
            let most = wanted.min(self.most(&spec.subnet));
            more.truncate(most.saturating_sub(self.usable(&spec)).min(room));
            self.enlarge(&name, &more);
            self.trim(&[name]);
        }
    }

    pub(crate) fn end(&mut self, end: &EndController) -> Reply {
        let EndController { realm, namespace, controller } = end.clone();
        let scale = ScaleController { realm, namespace, controller, replicas: 0, start: 0 };
        let said = self.scale(&scale);
        for name in self.touched(&scale) {
            let pool = self.pools.get_mut(&name).expect("it is there");
            if pool.spec.reclaim == Some(true) {
                self.leave(&name, AutomaticStanding::Ended);
                continue;
            }
            let automatic = pool.automatic.as_mut().expect("it is automatic");
            automatic.standing = AutomaticStanding::Ended;
            automatic.controller.uid = None;
        }
        said
    }

    /// Spec of a pool as users may write it.
    pub(crate) fn operator_spec(old: Option<&Pool>, new: &PoolSpec) -> Result<PoolSpec, Code> {
        let automatic = old.and_then(|old| Some((&old.spec, old.automatic.as_ref()?)));
        let Some((old, automatic)) = automatic else {
            return if new.reclaim.is_some() { Err(Code::ConflictingFields) } else { Ok(new.clone()) };
        };
        let same = (&old.ranges, &old.exclude) == (&new.ranges, &new.exclude);
        if !same || new.drains_to.is_some() || new.default {
            return Err(Code::ImmutableField);
        }
        let reclaim = new.reclaim != Some(false);
        let goes = reclaim && automatic.standing == AutomaticStanding::Ended;
        Ok(PoolSpec { reclaim: Some(reclaim), terminating: new.terminating || goes, ..new.clone() })
    }
}
