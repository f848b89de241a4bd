//! The model's own adoption.

use std::net::IpAddr;

use ipam_api::name::Name;
use ipam_api::{Code, Family};
use ipam_raft::machine::command::InterfaceWish;

use super::{Choice, stands_for, unspecific};
use crate::naive::{Held, Model, Pool};

impl Model {
    /// What an interface has already: anything that a pool could give to anybody, unless somebody holds it.
    pub(super) fn choose_adopted(
        &self,
        wish: &InterfaceWish,
        taken: &[Held],
        portable: &[Held],
    ) -> Result<Vec<Choice<'_>>, Code> {
        let mut addresses = wish.addresses.clone();
        addresses.sort_by_key(IpAddr::is_ipv6);
        let adopt = |address: IpAddr| {
            let family = Family::of(address);
            let names = wish.pools.of(family);
            let family_of = |pool: &Pool| Family::of(self.subnet_of(&pool.intention).cidr.addr());
            let mut pools: Vec<&Pool> = Vec::new();
            for pattern in names {
                let fit = |pool: &&Pool| stands_for(pattern, &pool.intention.name);
                let mut found: Vec<&Pool> = self.pools.values().filter(fit).collect();
                if pattern.name().is_some() && found.iter().any(|pool| family_of(pool) != family) {
                    return Err(Code::FamilyMismatch);
                }
                found.retain(|pool| family_of(pool) == family);
                if found.is_empty() {
                    return Err(Code::NotFound);
                }
                pools.extend(found);
            }
            pools.sort_by_key(|pool| unspecific(&pool.intention.takers));
            if names.is_empty() {
                let default = Name::default_name();
                pools = self.pools.values().collect();
                pools.retain(|pool| self.subnet_of(&pool.intention).network == default);
            }
            let pool = pools.iter().find(|pool| self.giveable(&pool.intention, address));
            let pool = pool.or_else(|| pools.iter().find(|pool| self.has(&pool.intention, address)));
            let pool = *pool.ok_or(Code::AddressOutsidePools)?;
            let network = &self.subnet_of(&pool.intention).network;
            if let Some(along) = portable.iter().find(|one| (&one.network, one.address) == (network, address))
            {
                return Ok(Choice::Along(along.clone()));
            }
            if self.holder(network, address).is_some() || self.block_at(network, address).is_some() {
                return Err(Code::AddressTaken);
            }
            if !self.giveable(&pool.intention, address) {
                return Err(Code::AddressReserved);
            }
            if pool.intention.terminating {
                return Err(Code::Terminating);
            }
            if taken.iter().any(|one| one.pool == pool.intention.name && one.address == address) {
                return Err(Code::AddressTaken);
            }
            Ok(Choice::New(pool, address))
        };
        addresses.into_iter().map(adopt).collect()
    }
}
