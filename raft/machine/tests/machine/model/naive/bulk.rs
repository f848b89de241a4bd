//! Requests for many endpoints or allocations: each after the other, and all of them or none.

use std::collections::BTreeSet;

use ipam_api::Code;
use ipam_api::resource::EndpointKey;
use ipam_machine::command::{Allocate, AllocateMany, RouteConfig};
use ipam_machine::id::AllocationId;

use super::{Model, Reply};

impl Model {
    pub(super) fn allocate_many(&mut self, many: &AllocateMany) -> Result<Reply, Code> {
        if many.names().collect::<BTreeSet<_>>().len() < many.names().count() {
            return Err(Code::ConflictingFields);
        }
        let mut draft = self.clone();
        let (mut repeats, mut all) = (Vec::new(), BTreeSet::new());
        for (index, name) in (0..).zip(many.names()) {
            let endpoint = EndpointKey { name: name.clone(), ..many.request.endpoint.clone() };
            let Reply::Given { repeated, addresses } =
                draft.allocate(&Allocate { endpoint: endpoint.clone(), ..many.request.clone() })?
            else {
                panic!("nothing of many waits")
            };
            let is_of =
                |number| draft.endpoints.iter().any(|one| one.number == number && one.key == endpoint);
            if draft.held.iter().any(|one| {
                is_of(one.endpoint)
                    && addresses.contains(&(one.interface.clone(), one.address))
                    && one.route_config != RouteConfig::default()
            }) {
                return Err(Code::ConflictingFields);
            }
            repeats.extend(repeated.then_some(index));
            all.extend(addresses.into_iter().map(|(_, address)| (index, address)));
        }
        *self = draft;
        Ok(Reply::GivenMany { repeated: repeats, addresses: all })
    }

    pub(super) fn release_allocations(&mut self, ids: &[AllocationId]) -> Reply {
        let (mut all, mut gone) = (Vec::new(), 0);
        for id in ids {
            if !self.held.iter().any(|one| one.id == id.get()) {
                gone += 1;
                continue;
            }
            if let Reply::Released(addresses) = self.release(|one| one.id == id.get()) {
                all.extend(addresses);
            }
        }
        let Reply::Released(mut all) = self.give_up_preallocated(Reply::Released(all)) else {
            unreachable!("it is of the same kind")
        };
        all.sort_unstable();
        Reply::ReleasedMany { addresses: all, gone }
    }
}
