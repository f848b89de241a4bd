//! Queue of waiting claims in the model.

use ipam_api::Code;
use ipam_api::limits::{INTERFACES_MAX, WAITING_POOLS_MAX, WAITING_TRIED_PER_COMMAND_MAX};
use ipam_api::name::Name;
use ipam_machine::command::Allocate;
use ipam_machine::event::WaitReason;

use crate::model::naive::quota::Bound;
use crate::model::naive::{Held, Incarnation, Model, Reply};

/// Resource that an endpoint waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Its place in line.
    pub(crate) place: u64,
    pub(crate) request: Allocate,
    pub(crate) why: WaitReason,
    /// Pools that may help, with how many addresses each would have to have.
    pub(crate) missing: Vec<(Name, usize)>,
    /// Exhausted quota, and the number of addresses that it must leave. Those that the endpoint brings along
    /// are extra.
    pub(crate) quota: Option<(Bound, usize)>,
}

/// Pools, or a quota.
type Missing = (Vec<(Name, usize)>, Option<(Bound, usize)>);

impl Model {
    /// Lets a request wait that was refused.
    pub(crate) fn wait(
        &mut self,
        request: &Allocate,
        meant: Option<&Incarnation>,
        code: Code,
    ) -> Result<Reply, Code> {
        if request.interfaces.iter().any(|interface| !self.portable(request, meant, interface).is_empty()) {
            return Err(code);
        }
        let (missing, quota) = self.missing(request, meant);
        let why = why(code, missing.is_empty() && quota.is_none());
        let number = meant.map_or(self.incarnations + 1, |one| one.number);
        if let Some(claim) = self.claim_of(number) {
            if claim.request != *request {
                return Err(Code::AlreadyExists);
            }
            (claim.why, claim.missing, claim.quota) = (why, missing, quota);
            return Ok(Reply::Pending { repeated: true, why });
        }
        if missing.is_empty() && quota.is_none() {
            return Err(code);
        }
        if meant.is_none() {
            self.begin_incarnation(request);
        }
        self.places += 1;
        let claim = Claim { place: self.places, request: request.clone(), why, missing, quota };
        let endpoint = self.endpoints.iter_mut().find(|one| one.number == number);
        endpoint.expect("it was just made").claim = Some(claim);
        Ok(Reply::Pending { repeated: false, why })
    }

    fn claim_of(&mut self, number: u64) -> Option<&mut Claim> {
        self.endpoints.iter_mut().find(|one| one.number == number)?.claim.as_mut()
    }

    /// Number of addresses that a pool can allocate.
    fn room(&self, name: &Name) -> usize {
        let Some(pool) = self.pools.get(name) else { return 0 };
        if pool.spec.terminating || pool.spec.disabled || pool.spec.drains_to.is_some() {
            return 0;
        }
        let mut given: Vec<Held> = Vec::new();
        while given.len() < INTERFACES_MAX {
            let Some(address) = self.next_in(pool, &given) else { break };
            given.push(self.as_held(pool, address));
        }
        given.len()
    }

    pub(crate) fn as_held(&self, pool: &crate::model::naive::Pool, address: std::net::IpAddr) -> Held {
        Held {
            id: 0,
            network: self.subnet_of(&pool.spec).network.clone(),
            pool: pool.spec.name.clone(),
            address,
            endpoint: 0,
            interface: "any".parse().expect("a name"),
            node: None,
            route_config: ipam_machine::command::RouteConfig::default(),
            lifecycle: ipam_api::resource::Lifecycle::Held,
            adopted: false,
            attachments: Vec::new(),
            lease: None,
            checked: false,
            mac: None,
            neighbor: None,
        }
    }

    /// The pools of the first family that can't be given; or the quota.
    fn missing(&self, request: &Allocate, meant: Option<&Incarnation>) -> Missing {
        let mut taken: Vec<Held> = Vec::new();
        for interface in &request.interfaces {
            let Ok(families) = self.candidates(request, interface) else { return (Vec::new(), None) };
            for pools in families.into_iter().map(|family| family.pools) {
                let ready =
                    pools.iter().filter(|pool| self.reject_reason(pool, request, interface).is_none());
                let given = ready.clone().find_map(|pool| Some((*pool, self.next_in(pool, &taken)?)));
                if let Some((pool, address)) = given {
                    taken.push(self.as_held(pool, address));
                    continue;
                }
                let hopeless = |pool: &crate::model::naive::Pool| {
                    self.reject_reason(pool, request, interface) == Some(Code::NoPoolFits)
                };
                let lacking = pools.iter().filter(|pool| !hopeless(pool)).map(|pool| {
                    let name = pool.spec.name.clone();
                    let number = taken.iter().filter(|one| one.pool == name).count() + 1;
                    (name, number)
                });
                return (lacking.take(WAITING_POOLS_MAX).collect(), None);
            }
        }
        (Vec::new(), self.exceeded(request, meant, &taken, &[]))
    }

    /// Serves the oldest claim whose resources have become available, if they suffice.
    pub(crate) fn serve_waiting(&mut self) {
        for _ in 0..WAITING_TRIED_PER_COMMAND_MAX {
            let could = |(one, claim): &(&Incarnation, &Claim)| {
                let leaves_enough = |bound: &Bound, asked: usize| {
                    self.room_of_quota(bound) >= asked + self.brought(one, bound)
                };
                claim.missing.iter().any(|(pool, need)| self.room(pool) >= *need)
                    || claim.quota.iter().any(|(bound, asked)| leaves_enough(bound, *asked))
            };
            let claims = self.endpoints.iter().filter_map(|one| Some((one, one.claim.as_ref()?)));
            let first = claims.filter(could).min_by_key(|(_, claim)| claim.place);
            let first = first.map(|(_, claim)| claim.clone());
            let prefix = self.first_prefix_claim().map(|claim| claim.place);
            if let Some(place) = prefix.filter(|at| first.as_ref().is_none_or(|claim| *at < claim.place)) {
                self.serve_prefix_claim(place);
                continue;
            }
            let Some(claim) = first else { return };
            let place = claim.place;
            if let Err(code) = self.give_to_waiting(&claim) {
                let waits = |one: &&Incarnation| one.claim.as_ref() == Some(&claim);
                let (missing, quota) = self.missing(&claim.request, self.endpoints.iter().find(waits));
                let of =
                    |one: &&mut Incarnation| one.claim.as_ref().is_some_and(|claim| claim.place == place);
                let claim = self.endpoints.iter_mut().find(of).and_then(|one| one.claim.as_mut());
                let claim = claim.expect("it waits");
                claim.why = why(code, missing.is_empty() && quota.is_none());
                (claim.missing, claim.quota) = (missing, quota);
            }
        }
    }

    fn give_to_waiting(&mut self, claim: &Claim) -> Result<(), Code> {
        let waits = |one: &&Incarnation| one.claim.as_ref() == Some(claim);
        let waiter = self.endpoints.iter().find(waits).expect("it waits").clone();
        let plan = self.plan(&claim.request, Some(&waiter))?;
        self.give(&claim.request, Some(&waiter), plan);
        Ok(())
    }

    /// Claims that wait for a pool also wait for its replacement.
    pub(crate) fn wait_for_stand_in(&mut self, name: &Name) {
        let Some(to) = self.pools.get(name).and_then(|pool| pool.spec.drains_to.clone()) else { return };
        self.wait_for_both(name, &to);
    }

    /// Claims that wait for one pool also wait for the other.
    pub(crate) fn wait_for_both(&mut self, name: &Name, to: &Name) {
        for claim in self.endpoints.iter_mut().filter_map(|one| one.claim.as_mut()) {
            let need = claim.missing.iter().find(|(pool, _)| pool == name).map(|(_, need)| *need);
            claim.missing.extend(need.map(|need| (to.clone(), need)));
        }
    }

    /// Removes a deleted pool from all claims.
    pub(crate) fn forget_waiting_for(&mut self, name: &Name) {
        for claim in self.endpoints.iter_mut().filter_map(|one| one.claim.as_mut()) {
            let waited = claim.missing.iter().any(|(pool, _)| pool == name);
            claim.missing.retain(|(pool, _)| pool != name);
            if waited && claim.missing.is_empty() {
                claim.why = WaitReason::AllocationFailed;
            }
        }
    }
}

fn why(code: Code, is_hopeless: bool) -> WaitReason {
    match code {
        _ if is_hopeless => WaitReason::AllocationFailed,
        Code::PoolExhausted => WaitReason::PoolExhausted,
        Code::QuotaExceeded => WaitReason::QuotaExceeded,
        _ => WaitReason::PoolNotReady,
    }
}
