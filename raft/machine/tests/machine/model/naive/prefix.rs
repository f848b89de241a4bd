//! The model's own prefixes: a list, and every address looked at.

use std::net::IpAddr;

use ipam_api::address::{AddressRange, number};
use ipam_api::limits::{EXPIRIES_PER_COMMAND_MAX, PREFIX_DAMPING_MS_MAX};
use ipam_api::name::{Name, ObjectName};
use ipam_api::{Code, Family};
use ipam_machine::command::{Delegate, PoolSelectors, PoolSpec, PrefixSource};
use ipnet::IpNet;

use crate::model::naive::{Model, Reply};

/// A prefix. Its id is not foretold: 0 until the machine has said it; its number is the model's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) id: u64,
    pub(crate) number: u64,
    /// The number of the one that it is cut from; none if it is cut from the pool.
    pub(crate) parent: Option<u64>,
    pub(crate) network: Name,
    pub(crate) pool: Name,
    pub(crate) cidr: IpNet,
    pub(crate) realm: Name,
    pub(crate) owner: ObjectName,
    pub(crate) keep_edges: bool,
    pub(crate) ttl_ms: Option<u64>,
    pub(crate) until_ms: Option<u64>,
    pub(crate) released: bool,
}

impl Model {
    pub(crate) fn block(&self, number: u64) -> &Block {
        self.blocks.iter().find(|one| one.number == number).expect("it is there")
    }

    fn block_mut(&mut self, number: u64) -> &mut Block {
        self.blocks.iter_mut().find(|one| one.number == number).expect("it is there")
    }

    /// The block of a pool that an address is in.
    pub(crate) fn block_at(&self, network: &Name, address: IpAddr) -> Option<&Block> {
        let covers =
            |one: &&Block| one.parent.is_none() && one.network == *network && one.cidr.contains(&address);
        self.blocks.iter().find(covers)
    }

    /// The smallest block that an address is in.
    pub(crate) fn smallest_at(&self, network: &Name, address: IpAddr) -> Option<&Block> {
        let covering =
            self.blocks.iter().filter(|one| one.network == *network && one.cidr.contains(&address));
        covering.max_by_key(|one| one.cidr.prefix_len())
    }

    /// Addresses of a pool that are held or delegated.
    pub(crate) fn held_of(&self, pool: &Name) -> u64 {
        let held = self.held.iter().filter(|one| one.pool == *pool).count() as u64;
        let top = self.blocks.iter().filter(|one| one.parent.is_none() && one.pool == *pool);
        held + top.map(|one| size_of(one.cidr)).sum::<u64>()
    }

    pub(crate) fn loses_a_block(&self, new: &PoolSpec) -> bool {
        let top = self.blocks.iter().filter(|one| one.parent.is_none() && one.pool == new.name);
        top.flat_map(|one| addresses(one.cidr)).any(|address| !self.allocatable(new, address))
    }

    /// A block's number and those of all above it.
    fn above(&self, number: u64) -> Vec<u64> {
        let mut all = vec![number];
        while let Some(parent) = self.block(all[all.len() - 1]).parent {
            all.push(parent);
        }
        all
    }

    fn over(&self, number: u64) -> bool {
        self.above(number).iter().any(|number| self.is_over(self.block(*number)))
    }

    fn is_over(&self, block: &Block) -> bool {
        block.released || block.until_ms.is_some_and(|until| self.has_passed(until))
    }

    pub(crate) fn delegate(&mut self, request: &Delegate) -> Result<Reply, Code> {
        let (mut parent, pool) = match &request.from {
            PrefixSource::Pool(name) => (None, name.clone()),
            PrefixSource::Prefix(id) => {
                let block = self.blocks.iter().find(|one| one.id == id.get()).ok_or(Code::NotFound)?;
                if self.over(block.number) {
                    return Err(Code::NotFound);
                }
                (Some(block.number), block.pool.clone())
            }
        };
        let spec = self.pools.get(&pool).ok_or(Code::NotFound)?.spec.clone();
        // All of it happens on a draft, which stays if nothing is refused.
        let mut draft = self.clone();
        let mut refreshed: Vec<(u64, Option<u64>)> = parent
            .map(|number| self.above(number))
            .unwrap_or_default()
            .into_iter()
            .map(|n| (n, None))
            .collect();
        let (mut cidrs, mut repeated) = (Vec::new(), true);
        for level in &request.levels {
            let same = |one: &&Block| {
                one.pool == pool
                    && one.parent == parent
                    && one.realm == request.realm
                    && one.owner == level.owner
            };
            if let Some(known) = self.blocks.iter().find(same) {
                if self.over(known.number) {
                    return Err(Code::InUse);
                }
                let odd = |length| known.cidr.prefix_len() != length || known.keep_edges != level.keep_edges;
                if level.length.is_some_and(odd) {
                    return Err(Code::AlreadyExists);
                }
                refreshed.push((known.number, level.ttl_ms));
                cidrs.push(known.cidr);
                parent = Some(known.number);
                continue;
            }
            repeated = false;
            let length = level.length.ok_or(Code::NotFound)?;
            if self.pools.get(&spec.name).is_some_and(|pool| pool.automatic.is_some()) {
                return Err(Code::NoPoolFits);
            }
            if let Some(code) = reject_reason(&spec, &request.realm) {
                return Err(code);
            }
            let cidr = draft.lowest(&spec, parent, length)?;
            draft.numbered += 1;
            draft.blocks.push(Block {
                id: 0,
                number: draft.numbered,
                parent,
                network: draft.subnet_of(&spec).network.clone(),
                pool: pool.clone(),
                cidr,
                realm: request.realm.clone(),
                owner: level.owner.clone(),
                keep_edges: level.keep_edges,
                ttl_ms: level.ttl_ms,
                until_ms: level.ttl_ms.map(|ttl| draft.now + ttl),
                released: false,
            });
            cidrs.push(cidr);
            parent = Some(draft.numbered);
        }
        let now = draft.now;
        for (number, wanted) in refreshed {
            let block = draft.block_mut(number);
            let Some(ttl) = wanted.or(block.ttl_ms) else { continue };
            let damped = (ttl / 4).clamp(1, PREFIX_DAMPING_MS_MAX);
            if block.ttl_ms != Some(ttl) || now + ttl >= block.until_ms.unwrap_or(0) + damped {
                (block.ttl_ms, block.until_ms) = (Some(ttl), Some(now + ttl));
            }
        }
        *self = draft;
        Ok(Reply::Delegated { repeated, cidrs })
    }

    /// Tries every block of a length.
    fn lowest(&self, pool: &PoolSpec, parent: Option<u64>, length: u8) -> Result<IpNet, Code> {
        let whole = match parent {
            Some(number) => self.block(number).cidr,
            None => self.subnet_of(pool).cidr,
        };
        let odd = parent.is_some() && length <= whole.prefix_len();
        if length > whole.max_prefix_len() || odd {
            return Err(Code::ConflictingFields);
        }
        if length < whole.prefix_len() {
            return Err(Code::PoolExhausted);
        }
        let is_free = |address: IpAddr| match parent {
            None => self.has(pool, address) && self.state_of(pool, address) == "free",
            Some(number) => {
                let whole = self.block(number);
                let edge = [whole.cidr.network(), whole.cidr.broadcast()].contains(&address);
                let mut children = self.blocks.iter().filter(|one| one.parent == parent);
                let kept = whole.keep_edges && edge;
                !kept && !children.any(|one| one.cidr.contains(&address))
            }
        };
        let mut all = whole.subnets(length).expect("it is long enough");
        all.find(|block| addresses(*block).all(is_free)).ok_or(Code::PoolExhausted)
    }

    pub(crate) fn release_prefix(&mut self, id: u64) -> Result<Reply, Code> {
        let number = self.blocks.iter().find(|one| one.id == id).ok_or(Code::NotFound)?.number;
        self.block_mut(number).released = true;
        let mut cidrs = Vec::new();
        while cidrs.len() < EXPIRIES_PER_COMMAND_MAX && self.blocks.iter().any(|one| one.number == number) {
            cidrs.insert(0, self.clear_below(number));
        }
        Ok(Reply::TakenBack { cidrs, ending: self.blocks.iter().any(|one| one.number == number) })
    }

    /// Clears away one of those whose time has passed, the bottom first.
    pub(crate) fn clear_one_ended(&mut self) -> bool {
        let ended = self.blocks.iter().filter(|one| self.is_over(one));
        // What was released comes before what has only ended.
        let first =
            ended.min_by_key(|one| (!one.released, one.until_ms.filter(|_| !one.released), one.number));
        let first = first.map(|one| one.number);
        first.map(|number| self.clear_below(number)).is_some()
    }

    fn clear_below(&mut self, number: u64) -> IpNet {
        let mut lowest = number;
        loop {
            let children = self.blocks.iter().filter(|one| one.parent == Some(lowest));
            match children.min_by_key(|one| one.cidr.network()) {
                Some(child) => lowest = child.number,
                None => break,
            }
        }
        let block = self.block(lowest).clone();
        self.blocks.retain(|one| one.number != lowest);
        self.drop_if_drained(&block.pool);
        block.cidr
    }
}

fn reject_reason(pool: &PoolSpec, realm: &Name) -> Option<Code> {
    let others = PoolSelectors { realms: Vec::new(), ..pool.selectors.clone() };
    let realms = &pool.selectors.realms;
    if others != PoolSelectors::default() || !realms.is_empty() && !realms.contains(realm) {
        Some(Code::NoPoolFits)
    } else if pool.terminating {
        Some(Code::Terminating)
    } else if pool.disabled || pool.drains_to.is_some() {
        Some(Code::PoolDisabled)
    } else {
        None
    }
}

fn size_of(cidr: IpNet) -> u64 {
    let range = AddressRange::of_cidr(cidr);
    u64::try_from(range.last() - range.first() + 1).unwrap()
}

fn addresses(cidr: IpNet) -> impl Iterator<Item = IpAddr> {
    let family = Family::of(cidr.addr());
    (number(cidr.network())..=number(cidr.broadcast())).map(move |n| family.address(n))
}
