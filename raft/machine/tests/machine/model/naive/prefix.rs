//! The model's own prefixes: a list, and every address looked at.

use std::net::IpAddr;

use ipam_api::address::{AddressRange, number};
use ipam_api::limits::{EXPIRIES_PER_COMMAND_MAX, PREFIX_DAMPING_MS_MAX};
use ipam_api::name::{Name, ObjectName};
use ipam_api::{Code, Family};
use ipam_machine::command::{Delegate, PoolSelectors, PoolSpec, PrefixSource};
use ipnet::IpNet;

use crate::model::naive::prefix_waiting::{Missing, PrefixClaim};
use crate::model::naive::{Cooling, Model, Reply};

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

/// Address of a block of one address that was cut from another block, and cools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CoolingBlock {
    /// The number of the block that it was cut from.
    pub(crate) parent: u64,
    pub(crate) address: IpAddr,
    pub(crate) realm: Name,
    pub(crate) owner: ObjectName,
    pub(crate) until_ms: u64,
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

    pub(crate) fn over(&self, number: u64) -> bool {
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
            let cidr = match draft.own_address(parent, (&request.realm, &level.owner), length) {
                Some(address) => address.into(),
                None => draft.lowest(&spec, parent, length)?,
            };
            draft.cooling.retain(|one| one.pool != pool || one.address != cidr.addr());
            draft.cooling_blocks.retain(|one| Some(one.parent) != parent || one.address != cidr.addr());
            draft.checks.retain(|one| parent.is_some() || one.pool != pool || !cidr.contains(&one.address));
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
            let number = draft.numbered;
            let is_awaited = |claim: &PrefixClaim, missing: &Missing| {
                claim.pool == pool
                    && claim.request.realm == request.realm
                    && matches!(missing, Missing::Block { parent: of, owner, .. }
                        if *of == parent && *owner == level.owner)
            };
            draft.turn_prefix_claims(is_awaited);
            parent = Some(number);
        }
        let now = draft.now;
        for (number, wanted) in refreshed {
            let block = draft.block_mut(number);
            let Some(ttl) = wanted.or(block.ttl_ms) else { continue };
            let damped = (ttl / 4).clamp(1, PREFIX_DAMPING_MS_MAX);
            if block.ttl_ms != Some(ttl) || now + ttl >= block.until_ms.unwrap_or(0) + damped {
                (block.ttl_ms, block.until_ms) = (Some(ttl), Some(now + ttl));
                draft.turn_prefix_claims(|_, missing| *missing == Missing::Cleared(number));
            }
        }
        *self = draft;
        Ok(Reply::Delegated { repeated, cidrs })
    }

    /// The address that cools in a block for its last owner, if it has this length.
    pub(crate) fn own_address(
        &self,
        parent: Option<u64>,
        (realm, owner): (&Name, &ObjectName),
        length: u8,
    ) -> Option<IpAddr> {
        let mut own = self.cooling_below(parent?).filter(|one| (&one.realm, &one.owner) == (realm, owner));
        let found = own.next().map(|one| one.address);
        assert!(own.next().is_none(), "two addresses of one block cool for {realm}/{owner}");
        found.filter(|address| IpNet::from(*address).prefix_len() == length)
    }

    /// Tries every block of a length.
    pub(crate) fn lowest(&self, pool: &PoolSpec, parent: Option<u64>, length: u8) -> Result<IpNet, Code> {
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
                let cools = self.cooling_below(number).any(|one| one.address == address);
                !kept && !cools && !children.any(|one| one.cidr.contains(&address))
            }
        };
        let mut all = whole.subnets(length).expect("it is long enough");
        if let Some(block) = all.find(|block| addresses(*block).all(is_free)) {
            return Ok(block);
        }
        if length < whole.max_prefix_len() || parent.is_some() && pool.strict_cooling {
            return Err(Code::PoolExhausted);
        }
        // The longest-free address that cools, as the last resort.
        if let Some(number) = parent {
            return match self.cooling_below(number).next() {
                Some(one) => Ok(one.address.into()),
                None => Err(Code::PoolExhausted),
            };
        }
        let network = &self.subnet_of(pool).network;
        let mut cooling = self.cooling.iter().filter(|one| one.pool == pool.name);
        let kept = usize::try_from(pool.cooling_reserve).unwrap();
        if pool.strict_cooling || cooling.clone().count() <= kept {
            return Err(Code::PoolExhausted);
        }
        let found = cooling.find(|one| !self.is_reserved(network, one.address)).ok_or(Code::PoolExhausted)?;
        Ok(found.address.into())
    }

    pub(crate) fn release_prefix(&mut self, id: u64) -> Result<Reply, Code> {
        if self.prefix_claims.iter().any(|one| one.id == id) {
            self.prefix_claims.retain(|one| one.id != id);
            return Ok(Reply::TakenBack { cidrs: Vec::new(), ending: false });
        }
        let number = self.blocks.iter().find(|one| one.id == id).ok_or(Code::NotFound)?.number;
        self.block_mut(number).released = true;
        let mut cidrs = Vec::new();
        for _ in 0..EXPIRIES_PER_COMMAND_MAX {
            if self.blocks.iter().any(|one| one.number == number)
                && let Some(cidr) = self.clear_below(number)
            {
                cidrs.insert(0, cidr);
            }
        }
        Ok(Reply::TakenBack { cidrs, ending: self.blocks.iter().any(|one| one.number == number) })
    }

    /// Clears away one of those whose time has passed, the bottom first.
    pub(crate) fn clear_one_ended(&mut self) -> bool {
        let ended = self.blocks.iter().filter(|one| self.is_over(one));
        // What was released comes before what has only ended.
        let first =
            ended.min_by_key(|one| (!one.released, one.until_ms.filter(|_| !one.released), one.number));
        let Some(number) = first.map(|one| one.number) else { return false };
        self.clear_below(number);
        true
    }

    /// Addresses that cool in a block, the longest-free first.
    pub(crate) fn cooling_below(&self, number: u64) -> impl Iterator<Item = &CoolingBlock> {
        self.cooling_blocks.iter().filter(move |one| one.parent == number)
    }

    /// Frees the address that cooled first, if its time has passed.
    pub(crate) fn end_cooling_block(&mut self) -> bool {
        let cooled = self.cooling_blocks.iter().enumerate().filter(|(_, one)| one.until_ms <= self.now);
        let first = cooled.min_by_key(|(i, one)| (one.until_ms, *i)).map(|(i, _)| i);
        first.map(|i| self.cooling_blocks.remove(i)).is_some()
    }

    /// Clears away the lowest block, or an address that cools in it.
    pub(super) fn clear_below(&mut self, number: u64) -> Option<IpNet> {
        let mut lowest = number;
        loop {
            let children = self.blocks.iter().filter(|one| one.parent == Some(lowest));
            match children.min_by_key(|one| one.cidr.network()) {
                Some(child) => lowest = child.number,
                None => break,
            }
        }
        if let Some(i) = self.cooling_blocks.iter().position(|one| one.parent == lowest) {
            self.cooling_blocks.remove(i);
            return None;
        }
        let block = self.block(lowest).clone();
        self.blocks.retain(|one| one.number != lowest);
        self.forget_block(block.id, lowest);
        let cooling_ms = self.pools.get(&block.pool).map_or(0, |pool| pool.spec.cooling_ms);
        let is_single = block.cidr.prefix_len() == block.cidr.max_prefix_len();
        let (address, until_ms) = (block.cidr.addr(), self.now + cooling_ms);
        let cools = is_single && cooling_ms > 0;
        match block.parent {
            _ if self.drop_if_drained(&block.pool) || !cools => {}
            Some(parent) if self.over(parent) => {}
            Some(parent) => {
                let (realm, owner) = (block.realm, block.owner);
                self.cooling_blocks.push(CoolingBlock { parent, address, realm, owner, until_ms });
            }
            None => {
                let (network, pool) = (block.network, block.pool);
                self.cooling.push(Cooling { network, pool, address, until_ms });
            }
        }
        Some(block.cidr)
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
