//! Gateways and routes of subnets and pools: checks, and the rule that no gateway is allocated.
//!
//! A pool excludes its own gateway and its subnet's. Another pool may contain a gateway only if it never
//! allocates it: a pool or gateway that would break this is refused.

use crate::apply::step::Step;
use crate::command::validate::{check_gateway, check_routes};
use crate::command::{Cause, PoolSpec, Refusal};
use crate::state::id::PoolId;
use crate::state::owners::within_subnet;
use crate::state::row::Subnet;
use crate::value::cause::{NamedPrefix, UsedBy};
use crate::value::shape::allocatable;
use ipam_api::address::{AddressRange, number};
use ipam_api::name::Name;
use std::net::IpAddr;

impl Step<'_> {
    /// Refuses a pool's gateway and routes outside its subnet, and a gateway that a pool would allocate.
    pub(super) fn check_gateway_of_pool(
        &self,
        pool: &PoolSpec,
        subnet: &Subnet,
        own_id: Option<PoolId>,
    ) -> Result<(), Refusal> {
        let cidr = subnet.spec.cidr;
        pool.gateway.map_or(Ok(()), |gateway| check_gateway(cidr, gateway))?;
        check_routes(cidr, &pool.routes)?;
        if let Some(gateway) = within_subnet(pool.gateway, subnet)
            && let Some(owner) = self.state.pool_at(subnet.network, gateway).filter(|id| Some(*id) != own_id)
            && self.state.space(owner).is_some_and(|space| space.allocatable.contains(number(gateway)))
        {
            return Err(given_away(gateway, &pool.name, &self.state.name_of_pool(owner)));
        }
        for range in allocatable(pool, &subnet.spec).ranges() {
            let mut gateways = self.state.gateways_in(subnet.network, range);
            if let Some((gateway, other)) = gateways.find(|(_, id)| Some(*id) != own_id) {
                return Err(given_away(gateway, &self.state.name_of_pool(other), &pool.name));
            }
        }
        Ok(())
    }

    /// Refuses a subnet's new gateway if it is held, or if a pool would then allocate another pool's gateway.
    pub(super) fn check_gateway_of_subnet(&self, old: &Subnet, new: Option<IpAddr>) -> Result<(), Refusal> {
        self.check_can_be_gateway(old, new)?;
        let Some(former) = within_subnet(old.spec.gateway, old) else { return Ok(()) };
        let other = self.state.gateways_in(old.network, AddressRange::single(former)).next();
        let owner = self.state.pool_at(old.network, former).and_then(|id| self.state.pools.get(id));
        match (owner.filter(|owner| owner.spec.gateway != Some(former)), other) {
            (Some(owner), Some((_, other))) => {
                Err(given_away(former, &self.state.name_of_pool(other), &owner.spec.name))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a gateway that an endpoint holds.
    pub(super) fn check_can_be_gateway(
        &self,
        subnet: &Subnet,
        gateway: Option<IpAddr>,
    ) -> Result<(), Refusal> {
        let Some(gateway) = within_subnet(gateway, subnet) else { return Ok(()) };
        let by = if let Some((_, held)) = self.state.allocation_at(subnet.network, gateway) {
            UsedBy::Endpoint(self.state.holder(held.endpoint))
        } else if let Some((prefix, row)) = self.state.prefix_at(subnet.network, gateway) {
            UsedBy::Prefix(NamedPrefix::of(prefix, row))
        } else {
            return Ok(());
        };
        Err(Cause::GatewayInUse { gateway, by }.into())
    }
}

fn given_away(gateway: IpAddr, of: &Name, by: &Name) -> Refusal {
    Cause::GatewayOffered { gateway, of: of.clone(), by: by.clone() }.into()
}
