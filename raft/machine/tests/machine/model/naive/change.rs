//! The model's own way to split a pool, and to drain one to another.

use std::net::IpAddr;

use ipam_api::address::{AddressRange, number};
use ipam_api::name::Name;
use ipam_api::{Code, Family};
use ipam_machine::command::{Kind, PoolSpec, SplitPool};

use crate::model::naive::{Model, Pool, Reply, all_of};

impl Model {
    pub(crate) fn split(&mut self, split: &SplitPool) -> Result<Reply, Code> {
        let old = self.pools.get(&split.name).cloned().ok_or(Code::NotFound)?;
        self.expect(Kind::Pool, &split.name, split.expect)?;
        if self.pools.contains_key(&split.into) {
            return Err(Code::AlreadyExists);
        }
        if old.automatic.is_some() {
            return Err(Code::ConflictingFields);
        }
        if old.spec.terminating {
            return Err(Code::Terminating);
        }
        let cidr = self.subnet_of(&old.spec).cidr;
        if split.ranges.iter().any(|range| range.family() != Family::of(cidr.addr())) {
            return Err(Code::FamilyMismatch);
        }
        let wanted = |address: IpAddr| among(&split.ranges, address);
        let named = split
            .ranges
            .iter()
            .flat_map(|range| (range.first()..=range.last()).map(|number| range.family().address(number)));
        if named.into_iter().any(|address| !self.has(&old.spec, address)) {
            return Err(Code::ConflictingFields);
        }
        let left = runs(all_of(cidr).filter(|address| self.has(&old.spec, *address) && !wanted(*address)));
        if left.is_empty() {
            return Err(Code::ConflictingFields);
        }
        if self.loses_a_block(&PoolSpec { ranges: left.clone(), ..old.spec.clone() }) {
            return Err(Code::InUse);
        }
        let excluded = all_of(cidr).filter(|address| among(&old.spec.exclude, *address));
        let split_off = PoolSpec {
            name: split.into.clone(),
            ranges: split.ranges.clone(),
            exclude: runs(excluded.filter(|address| wanted(*address))),
            ..old.spec.clone()
        };
        let kept = |range: &AddressRange| {
            let all = (range.first()..=range.last()).map(|number| range.family().address(number));
            runs(all.filter(|address| !wanted(*address)))
        };
        let exclude = old.spec.exclude.iter().flat_map(kept).collect();
        let cursor = old.cursor.filter(|cursor| wanted(*cursor));
        self.pools.insert(split.into.clone(), Pool { spec: split_off, cursor, automatic: None });
        let spec = PoolSpec { ranges: left, exclude, ..old.spec };
        self.pools.insert(split.name.clone(), Pool { spec, cursor: old.cursor, automatic: None });
        for one in self.held.iter_mut().filter(|one| one.pool == split.name && wanted(one.address)) {
            one.pool = split.into.clone();
        }
        for one in self.cooling.iter_mut().filter(|one| one.pool == split.name && wanted(one.address)) {
            one.pool = split.into.clone();
        }
        for one in self.quarantines.iter_mut().filter(|one| one.pool == split.name && wanted(one.address)) {
            one.pool = split.into.clone();
        }
        self.wait_for_both(&split.name, &split.into);
        Ok(Reply::Stored { created: true })
    }

    /// Checks that the replacement of a drained pool is valid.
    pub(crate) fn check_drains_to(&self, pool: &PoolSpec) -> Result<(), Code> {
        let Some(to) = &pool.drains_to else { return Ok(()) };
        if *to == pool.name {
            return Err(Code::ConflictingFields);
        }
        let found = self.pools.get(to).ok_or(Code::NotFound)?;
        let other = &found.spec;
        let (here, there) = (self.subnet_of(pool), self.subnet_of(other));
        if Family::of(here.cidr.addr()) != Family::of(there.cidr.addr()) {
            return Err(Code::FamilyMismatch);
        }
        if here.network != there.network {
            return Err(Code::ConflictingFields);
        }
        if other.terminating {
            return Err(Code::Terminating);
        }
        if found.automatic.is_some() || other.drains_to.is_some() {
            Err(Code::ConflictingFields)
        } else {
            Ok(())
        }
    }

    /// Candidates, each followed by the one that stands in for it, where `may_take` from the drained one.
    pub(crate) fn with_stand_ins<'a>(
        &'a self,
        candidates: &[&'a Pool],
        may_take: impl Fn(&Pool) -> bool,
    ) -> Vec<&'a Pool> {
        let mut all = Vec::new();
        for pool in candidates {
            all.push(*pool);
            let to = pool.spec.drains_to.as_ref().filter(|_| may_take(pool));
            let place = |pool: &Pool| {
                let subnet = self.subnet_of(&pool.spec);
                (subnet.network.clone(), Family::of(subnet.cidr.addr()))
            };
            let could = |other: &&Pool| other.automatic.is_none() && place(other) == place(pool);
            all.extend(to.and_then(|to| self.pools.get(to)).filter(could));
        }
        all
    }

    /// True if a pool replaces one of these.
    pub(crate) fn stands_in(&self, pool: &Name, named: impl Fn(&Name) -> bool) -> bool {
        self.pools.values().any(|one| named(&one.spec.name) && one.spec.drains_to.as_ref() == Some(pool))
    }
}

fn among(ranges: &[AddressRange], address: IpAddr) -> bool {
    ranges.iter().any(|range| range.contains(&AddressRange::single(address)))
}

/// As few ranges as possible of addresses in order.
pub(crate) fn runs(addresses: impl Iterator<Item = IpAddr>) -> Vec<AddressRange> {
    let mut runs: Vec<AddressRange> = Vec::new();
    for address in addresses {
        match runs.last_mut() {
            Some(run) if run.last() + 1 == number(address) => {
                *run = AddressRange::new(run.first_address(), address).unwrap();
            }
            _ => runs.push(AddressRange::single(address)),
        }
    }
    runs
}
