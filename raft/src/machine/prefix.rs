//! Prefixes: the lowest free aligned block of a length, cut from a pool or from another prefix, to any depth.
//!
//! A block that is cut from a pool is taken from the pool's own free set, so that no address in it is ever given by
//! the pool; what is cut from a prefix is taken from a free set of that prefix. Asking again for what one has gives
//! the same and lets it, and all above it, live on.

mod blocks;
mod end;
mod plan;

use ipam_api::limits::{PREFIX_DAMPING_MS_MAX, PREFIX_LEVELS_MAX, PREFIX_TTL_MS_MAX, PREFIX_TTL_MS_MIN};
use ipam_api::name::Name;
use ipnet::IpNet;

pub(super) use self::blocks::{Division, blocks_within};
pub(super) use self::end::RELEASED_MS;
use self::plan::{Plan, not_longer};
use super::check::within;
use super::command::Cause;
use super::command::cause::Counted;
use super::command::{Answer, Delegate, GivenPrefix, PrefixLevel, Refusal, Text};
use super::event::What;
use super::model::{Prefix, PrefixOwner};
use super::state::State;
use super::step::Step;

/// Bits of the longest address: no prefix is longer.
pub(super) const LENGTH_MAX: u8 = 128;

impl Delegate {
    pub(super) fn check(&self) -> Result<(), Refusal> {
        within(Counted::PrefixLevels, self.levels.len(), PREFIX_LEVELS_MAX)?;
        if self.levels.is_empty() {
            return Err(Cause::NoLevel.into());
        }
        let mut above = None;
        for level in &self.levels {
            if let Some(length) = level.length {
                if !(1..=LENGTH_MAX).contains(&length) {
                    return Err(Cause::PrefixLength { length }.into());
                }
                if above.is_some_and(|above| above >= length) {
                    return Err(not_longer(length, above.unwrap_or_default()));
                }
                above = Some(length);
            }
            match level.ttl_ms {
                Some(ttl_ms) if !(PREFIX_TTL_MS_MIN..=PREFIX_TTL_MS_MAX).contains(&ttl_ms) => {
                    return Err(Cause::PrefixTtl { ttl_ms }.into());
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl Step<'_> {
    pub(super) fn delegate(&mut self, wish: &Delegate) -> Result<Answer, Refusal> {
        let (grant, _) = self.rights.as_ref().map_err(Clone::clone)?;
        let plan = self.state.plan_prefixes(wish, grant)?;
        self.refresh_prefixes(&plan, wish);
        let mut ids = plan.known.clone();
        let mut parent = ids.last().copied().unwrap_or(plan.source);
        for (level, cidr) in wish.levels.iter().skip(plan.known.len()).zip(&plan.fresh) {
            parent = self.write_prefix(&plan, wish, level, *cidr, parent);
            ids.push(parent);
        }
        let prefixes = ids.iter().filter_map(|id| self.state.given_prefix(*id)).collect();
        Ok(Answer::Delegated { repeated: plan.fresh.is_empty(), prefixes })
    }

    fn write_prefix(
        &mut self,
        plan: &Plan,
        wish: &Delegate,
        level: &PrefixLevel,
        cidr: IpNet,
        parent: u64,
    ) -> u64 {
        let id = self.state.tick();
        let subnet = self.state.pools.get(plan.pool).and_then(|pool| self.state.subnets.get(pool.subnet));
        let network = subnet.map_or(0, |row| row.network);
        let row = Prefix {
            cidr,
            network,
            pool: plan.pool,
            parent,
            owner: PrefixOwner { realm: wish.realm.clone(), name: level.owner.clone() },
            keep_edges: level.keep_edges,
            ttl_ms: level.ttl_ms,
            until_ms: level.ttl_ms.map(|ttl_ms| self.state.log_time_ms().saturating_add(ttl_ms)),
            released: false,
            created_wall_ms: self.at.wall_ms,
            created_by: Text::clone(&self.origin.principal),
        };
        self.state.index.insert_prefix(id, &row);
        self.state.cut(&row);
        let pool = self.state.pools.get(plan.pool).map(|pool| pool.intention.name.clone());
        self.emit(What::Delegated {
            network: self.state.name_of_network(network),
            cidr,
            pool: pool.unwrap_or_else(Name::default_name),
            owner: row.owner.clone(),
            prefix: id,
            parent: (parent != plan.pool).then_some(parent),
        });
        self.state.prefixes.put(id, row, &mut self.state.ledger);
        if parent == plan.pool {
            self.refresh_readiness(plan.pool);
        }
        id
    }

    /// Lets what is there live on. A little longer is not worth writing down.
    fn refresh_prefixes(&mut self, plan: &Plan, wish: &Delegate) {
        let above = plan.above.iter().map(|id| (*id, None));
        let known = plan.known.iter().zip(&wish.levels).map(|(id, level)| (*id, level.ttl_ms));
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
            self.state.end_prefix_at(id, row);
        }
    }
}

impl State {
    /// A prefix with all that its owner needs to know.
    #[must_use]
    pub fn given_prefix(&self, id: u64) -> Option<GivenPrefix> {
        let row = self.prefixes.get(id)?;
        let pool = self.pools.get(row.pool)?;
        let rows = self.prefix_chain(id).into_iter().filter_map(|id| self.prefixes.get(id));
        let mut path: Vec<_> = rows.map(|row| row.owner.name.clone()).collect();
        path.reverse();
        Some(GivenPrefix {
            id,
            cidr: row.cidr,
            network: self.name_of_network(row.network),
            subnet: pool.intention.subnet.clone(),
            pool: pool.intention.name.clone(),
            parent: (row.parent != row.pool).then_some(row.parent),
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

fn no_prefix(id: u64) -> Refusal {
    Cause::NoPrefix { prefix: id }.into()
}
