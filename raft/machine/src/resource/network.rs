//! Networks: created, changed, and deleted once they are empty.

use crate::apply::step::Step;
use crate::command::{Answer, Cause, Expect, Refusal};
use crate::state::row::Network;
use ipam_api::name::ResourceName;

impl Step<'_> {
    pub(crate) fn delete_network(&mut self, name: &ResourceName, expect: Expect) -> Result<Answer, Refusal> {
        let id = self.to_write::<Network>(name, expect)?;
        if name.as_str() == ipam_api::brand::DEFAULT {
            return Err(Cause::DefaultNetwork.into());
        }
        let subnets = self.state.subnets_of(id).count();
        if subnets > 0 {
            return Err(Cause::NetworkHasSubnets { network: name.clone(), subnets: subnets as u64 }.into());
        }
        let reservations = self.state.reservations.iter().filter(|(_, row)| row.network == id).count();
        if reservations > 0 {
            let (network, reservations) = (name.clone(), reservations as u64);
            return Err(Cause::NetworkHasReservations { network, reservations }.into());
        }
        self.delete(id, name);
        Ok(Answer::Gone)
    }
}
