//! The model's own adoption.

use std::net::IpAddr;

use ipam_api::name::Name;
use ipam_api::{Code, Family};
use ipam_machine::command::InterfaceRequest;

use super::{Choice, stands_for, unspecific};
use crate::model::naive::{Held, Model, Pool};

impl Model {
    /// Address to adopt: any that some pool could allocate, unless another endpoint holds it.
    pub(super) fn choose_adopted(
        &self,
        request: &InterfaceRequest,
        taken: &[Held],
        portable: &[Held],
    ) -> Result<Vec<Choice<'_>>, Code> {
        let mut addresses = request.addresses.clone();
        addresses.sort_by_key(IpAddr::is_ipv6);
        let adopt = |address: IpAddr| {
            let family = Family::of(address);
            let names = request.pools.of(family);
            let family_of = |pool: &Pool| Family::of(self.subnet_of(&pool.spec).cidr.addr());
            let mut pools: Vec<&Pool> = Vec::new();
            for pattern in names {
                let fit = |pool: &&Pool| stands_for(pattern, &pool.spec.name);
                let mut found: Vec<&Pool> = self.pools.values().filter(fit).collect();
                let is_named = pattern.name().is_some() && !found.is_empty();
                found.retain(|pool| family_of(pool) == family);
                if found.is_empty() && !is_named {
                    return Err(Code::NotFound);
                }
                pools.extend(found);
            }
            if !names.is_empty() && pools.is_empty() {
                return Err(Code::FamilyMismatch);
            }
            pools.sort_by_key(|pool| unspecific(&pool.spec.selectors));
            if names.is_empty() {
                let default = Name::default_name();
                pools = self.pools.values().collect();
                pools.retain(|pool| self.subnet_of(&pool.spec).network == default);
            }
            pools.retain(|pool| self.has(&pool.spec, address));
            pools.sort_by_key(|pool| !self.allocatable(&pool.spec, address));
            let network = |pool: &Pool| self.subnet_of(&pool.spec).network.clone();
            let own = |pool: &&Pool| {
                portable.iter().find(|one| one.address == address && one.network == network(pool))
            };
            if let Some(reused) = pools.iter().find_map(own) {
                return Ok(Choice::Reused(reused.clone()));
            }
            let reject_reason = |pool: &Pool| {
                let network = network(pool);
                let is_chosen = |one: &Held| one.pool == pool.spec.name && one.address == address;
                if self.holder(&network, address).is_some() || self.block_at(&network, address).is_some() {
                    Some(Code::AddressTaken)
                } else if !self.allocatable(&pool.spec, address) {
                    Some(Code::AddressReserved)
                } else if pool.spec.terminating {
                    Some(Code::Terminating)
                } else if taken.iter().any(is_chosen) {
                    Some(Code::AddressTaken)
                } else {
                    None
                }
            };
            match pools.iter().find(|pool| reject_reason(pool).is_none()) {
                Some(pool) => Ok(Choice::New(pool, address)),
                None => Err(pools
                    .first()
                    .and_then(|pool| reject_reason(pool))
                    .unwrap_or(Code::AddressOutsidePools)),
            }
        };
        addresses.into_iter().map(adopt).collect()
    }
}
