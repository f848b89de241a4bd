//! Which prefixes are there, and which blocks the others get: looked up and chosen before anything is written.

use ipam_api::{Code, Family};
use ipnet::IpNet;

use super::blocks::Division;
use super::{invalid, no_prefix};
use crate::machine::automatic::FOR_ANOTHER;
use crate::machine::command::{Delegate, Grant, Kind, PrefixLevel, PrefixSource, Refusal, Takers};
use crate::machine::free_set::FreeSet;
use crate::machine::model::{Prefix, PrefixOwner};
use crate::machine::state::State;
use crate::machine::step::not_found;

/// What was decided before anything is written.
pub(super) struct Plan {
    pub(super) pool: u64,
    /// What the first level is cut from: a pool or a prefix.
    pub(super) source: u64,
    /// Prefixes above the first level, the lowest first. They live on, too.
    pub(super) above: Vec<u64>,
    /// Levels that are there already.
    pub(super) known: Vec<u64>,
    /// The others, each cut from the one before it.
    pub(super) fresh: Vec<IpNet>,
}

impl State {
    /// Finds what is there, and a block for each level that isn't.
    pub(super) fn plan_prefixes(&self, wish: &Delegate, grant: &Grant) -> Result<Plan, Refusal> {
        let (source, pool) = match &wish.from {
            PrefixSource::Pool(name) => {
                let id = self.id_of(Kind::Pool, name).ok_or_else(|| not_found(Kind::Pool, name))?;
                (id, id)
            }
            PrefixSource::Prefix(id) => {
                let row = self.prefixes.get(*id).filter(|_| !self.has_ended(*id));
                (*id, row.ok_or_else(|| no_prefix(*id))?.pool)
            }
        };
        self.permit_pool(grant, pool)?;
        let mut plan =
            Plan { pool, source, above: self.prefix_chain(source), known: Vec::new(), fresh: Vec::new() };
        for level in &wish.levels {
            let parent = plan.known.last().copied().unwrap_or(source);
            let owner = PrefixOwner { realm: wish.realm.clone(), name: level.owner.clone() };
            let known = match plan.fresh.is_empty() {
                true => self.prefix_of(parent, &owner),
                false => None,
            };
            if let Some((id, row)) = known {
                self.check_same(id, row, level)?;
                plan.known.push(id);
                continue;
            }
            let Some(length) = level.length else {
                return Err(Refusal::new(Code::NotFound, format!("{} has no prefix there", level.owner))
                    .help("Say how long it shall be, and it is delegated."));
            };
            let whole = plan.fresh.len().checked_sub(1).and_then(|last| {
                let keeps = wish.levels.get(plan.known.len() + last)?.keep_edges;
                Some((*plan.fresh.get(last)?, keeps))
            });
            let cidr = match whole {
                Some((cidr, keep_edges)) => {
                    lowest_in(cidr, &Division::none_of(cidr, keep_edges).free, length)?
                }
                None => self.lowest_block(plan.pool, parent, wish, length)?,
            };
            plan.fresh.push(cidr);
        }
        Ok(plan)
    }

    /// The block that is cut next from a pool or a prefix.
    fn lowest_block(&self, pool: u64, parent: u64, wish: &Delegate, length: u8) -> Result<IpNet, Refusal> {
        self.check_delegates(pool, wish)?;
        if let Some(row) = self.prefixes.get(parent) {
            return match self.index.divided.get(&parent) {
                Some(division) => lowest_in(row.cidr, &division.free, length),
                None => lowest_in(row.cidr, &Division::none_of(row.cidr, row.keep_edges).free, length),
            };
        }
        let (Some(row), Some(space)) = (self.pools.get(pool), self.space(pool)) else {
            return Err(Refusal::new(Code::NotFound, "the pool is gone"));
        };
        let name = &row.intention.name;
        let bits = space.family.bits();
        check_fits(length, bits)?;
        let block = space.free.lowest_block(bits - length).map(|first| space.family.address(first));
        block.and_then(|first| IpNet::new(first, length).ok()).ok_or_else(|| {
            let counts = space.counts();
            Refusal::new(
                Code::PoolExhausted,
                format!(
                    "no aligned block of /{length} is free in pool {name} ({} of {} addresses are free)",
                    counts.free, counts.size
                ),
            )
            .help("Ask for a longer prefix, or release what is no longer needed. A block with the gateway, an exclusion, a reservation or an edge of the subnet in it is never free: allow_edges lets the edges go.")
        })
    }

    /// Refuses to cut from a pool that gives nothing, or is meant for others.
    fn check_delegates(&self, pool: u64, wish: &Delegate) -> Result<(), Refusal> {
        let Some(row) = self.pools.get(pool) else { return Ok(()) };
        let intention = &row.intention;
        let realms = &intention.takers.realms;
        let others = Takers { realms: Vec::new(), ..intention.takers.clone() };
        let (code, why) = if !realms.is_empty() && !realms.contains(&wish.realm) {
            (Code::NoPoolFits, "for other realms")
        } else if row.automatic.is_some() {
            (Code::NoPoolFits, FOR_ANOTHER)
        } else if others != Takers::default() {
            (Code::NoPoolFits, "for certain endpoints only, and prefixes have none")
        } else if intention.terminating {
            (Code::Terminating, "terminating")
        } else if intention.disabled {
            (Code::PoolDisabled, "disabled")
        } else if intention.drains_to.is_some() {
            (Code::PoolDisabled, "drained to another pool")
        } else if !self.is_confirmed(pool) {
            (Code::GenerationUnconfirmed, "not confirmed since the restore")
        } else {
            return Ok(());
        };
        Err(Refusal::new(code, format!("pool {} is {why}", intention.name)))
    }

    /// Refuses to answer with a prefix that is not as wished.
    fn check_same(&self, id: u64, row: &Prefix, level: &PrefixLevel) -> Result<(), Refusal> {
        let told = self.told_prefix(id, row);
        if self.has_ended(id) {
            return Err(Refusal::new(Code::InUse, format!("{told} has ended and is being cleared away"))
                .help("Ask again when it is gone."));
        }
        let Some(length) = level.length else { return Ok(()) };
        if length != row.cidr.prefix_len() || level.keep_edges != row.keep_edges {
            let keeps = if row.keep_edges { "keeps its edges" } else { "gives its edges" };
            return Err(Refusal::new(
                Code::AlreadyExists,
                format!("{told} is there already, has a length of {} and {keeps}", row.cidr.prefix_len()),
            )
            .help("Ask for it as it is, release it first, or name another owner."));
        }
        Ok(())
    }
}

/// The lowest free block of a length in a prefix.
fn lowest_in(cidr: IpNet, free: &FreeSet, length: u8) -> Result<IpNet, Refusal> {
    check_fits(length, cidr.max_prefix_len())?;
    if length <= cidr.prefix_len() {
        return Err(not_longer(length, cidr.prefix_len()));
    }
    let first = free.lowest_block(cidr.max_prefix_len() - length);
    let block = first.and_then(|first| IpNet::new(Family::of(cidr.addr()).address(first), length).ok());
    block.ok_or_else(|| {
        Refusal::new(Code::PoolExhausted, format!("no aligned block of /{length} is free in prefix {cidr}"))
            .help("Ask for a longer prefix, or release what is no longer needed.")
    })
}

fn check_fits(length: u8, bits: u8) -> Result<(), Refusal> {
    if length <= bits {
        return Ok(());
    }
    Err(invalid(format!("a prefix of this family is {bits} bits long at most, and not {length}")))
}

pub(super) fn not_longer(length: u8, above: u8) -> Refusal {
    invalid(format!("a prefix of /{length} can't be cut from one of /{above}: its length must be greater"))
}
