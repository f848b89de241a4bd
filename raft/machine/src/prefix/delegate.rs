//! Delegation of prefixes: the lowest free aligned block of a length, cut from a pool or a prefix.
//!
//! A block that is cut from a pool leaves the pool's free set, so the pool never allocates an address in it;
//! a block that is cut from a prefix leaves that prefix's free set. Repeating a request returns the same
//! prefix and refreshes it and all above it.

use crate::apply::step::Step;
use crate::command::{Answer, Cause, Delegate, GivenPrefix, PrefixLevel, Refusal, Text};
use crate::event::EventKind;
use crate::prefix::plan::Plan;
use crate::state::id::{ParentId, PrefixId};
use crate::state::row::{Prefix, PrefixOwner, WaitTarget};
use crate::state::{Occupant, State};
use ipam_api::limits::PREFIX_DAMPING_MS_MAX;
use ipnet::IpNet;

impl Step<'_> {
    pub(crate) fn delegate(&mut self, request: &Delegate) -> Result<Answer, Refusal> {
        let plan = self.state.plan_prefixes(request, self.search()?)?;
        Ok(self.write_prefixes(request, &plan))
    }

    /// Writes the plan of a delegation.
    pub(super) fn write_prefixes(&mut self, request: &Delegate, plan: &Plan) -> Answer {
        self.refresh_prefixes(plan, request);
        let mut ids = plan.known.clone();
        let mut parent = ids.last().copied().map_or(plan.source, ParentId::from);
        for (level, cidr) in request.levels.iter().skip(plan.known.len()).zip(&plan.fresh) {
            let id = self.write_prefix(plan, request, level, *cidr, parent);
            ids.push(id);
            parent = id.into();
        }
        let prefixes = ids.iter().filter_map(|id| self.state.given_prefix(*id)).collect();
        Answer::Delegated { repeated: plan.fresh.is_empty(), prefixes }
    }

    fn write_prefix(
        &mut self,
        plan: &Plan,
        request: &Delegate,
        level: &PrefixLevel,
        cidr: IpNet,
        parent: ParentId,
    ) -> PrefixId {
        let id = self.state.new_id();
        let pool = self.state.pools.named(plan.pool);
        let network = self.state.subnets.named(pool.subnet).network;
        let row = Prefix {
            cidr,
            network,
            pool: plan.pool,
            parent,
            owner: PrefixOwner { realm: request.realm.clone(), name: level.owner.clone() },
            keep_edges: level.keep_edges,
            ttl_ms: level.ttl_ms,
            until_ms: level.ttl_ms.map(|ttl_ms| self.state.log_time_ms().saturating_add(ttl_ms)),
            released: false,
            created_wall_ms: self.at.wall_ms,
            created_by: Text::clone(&self.origin.principal),
        };
        if let Some(Occupant::Cooling(cooling)) = self.state.occupant(network, cidr.addr()) {
            drop(self.state.end_cooling(cooling));
        }
        if let Some(cooling) = self.state.prefix_cooling_at(parent.prefix(), cidr.addr()) {
            drop(self.state.end_prefix_cooling(cooling));
        }
        self.state.cut(&row);
        let of = self.state.delegation(id, &row);
        self.emit(EventKind::Delegated {
            of,
            parent: (parent != plan.pool.into()).then_some(parent.prefix()),
        });
        let owner = row.owner.clone();
        self.state.write(id, row);
        match parent == plan.pool.into() {
            true => {
                self.state.end_checks_of_unfree(plan.pool);
                self.refresh_readiness(plan.pool);
            }
            false => self.state.refresh_waiter(&WaitTarget::Block(parent)),
        }
        self.turn_claims_awaiting(parent, &owner);
        id
    }

    /// Refreshes the existing prefixes. A slightly later end isn't worth a write.
    fn refresh_prefixes(&mut self, plan: &Plan, request: &Delegate) {
        let above = plan.above.iter().map(|id| (*id, None));
        let known = plan.known.iter().zip(&request.levels).map(|(id, level)| (*id, level.ttl_ms));
        let now = self.state.log_time_ms();
        let mut later = Vec::new();
        for (id, wanted) in above.chain(known) {
            let Some(row) = self.state.prefixes.get(id) else { continue };
            let Some(ttl_ms) = wanted.or(row.ttl_ms) else { continue };
            let until_ms = now.saturating_add(ttl_ms);
            let gain = until_ms.saturating_sub(row.until_ms.unwrap_or_default());
            if row.ttl_ms != Some(ttl_ms) || gain >= PREFIX_DAMPING_MS_MAX.min(ttl_ms / 4) && gain > 0 {
                later.push((id, Prefix { ttl_ms: Some(ttl_ms), until_ms: Some(until_ms), ..row.clone() }));
            }
        }
        if !later.is_empty() {
            self.state.tick();
        }
        for (id, row) in later {
            self.state.write(id, row);
            // A claim may have found the prefix ended, before the grace of a new leadership extended it.
            self.turn_claims_for_block_of(id.into());
        }
    }
}

impl State {
    /// Returns a prefix with the data that its owner needs.
    #[must_use]
    pub fn given_prefix(&self, id: PrefixId) -> Option<GivenPrefix> {
        let row = self.prefixes.get(id)?;
        let pool = self.pools.get(row.pool)?;
        let rows = self.prefix_chain(id).into_iter().filter_map(|id| self.prefixes.get(id));
        let mut path: Vec<_> = rows.map(|row| row.owner.name.clone()).collect();
        path.reverse();
        Some(GivenPrefix {
            id,
            cidr: row.cidr,
            network: self.name_of_network(row.network),
            subnet: pool.spec.subnet.clone(),
            pool: pool.spec.name.clone(),
            parent: (row.parent != row.pool.into()).then_some(row.parent.prefix()),
            path,
            realm: row.owner.realm.clone(),
            owner: row.owner.name.clone(),
            keep_edges: row.keep_edges,
            ttl_ms: row.ttl_ms,
            ends_in_ms: row.until_ms.map(|until| until.saturating_sub(self.log_time_ms())),
            children: self.index.divided.get(&id).map_or(0, |division| division.children),
            created_wall_ms: row.created_wall_ms,
            created_by: Text::clone(&row.created_by),
        })
    }
}

pub(super) fn no_prefix(id: PrefixId) -> Refusal {
    Cause::NoPrefix { prefix: id.get() }.into()
}
