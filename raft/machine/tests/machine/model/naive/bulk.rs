//! Requests for many endpoints or allocations: each after the other, and all of them or none.

use std::collections::BTreeSet;

use ipam_api::Code;
use ipam_api::resource::EndpointKey;
use ipam_machine::command::{Allocate, AllocateMany};
use ipam_machine::id::AllocationId;

use super::{Model, Reply};

impl Model {
    pub(super) fn allocate_many(&mut self, many: &AllocateMany) -> Result<Reply, Code> {
        let mut draft = self.clone();
        let (mut repeats, mut all) = (Vec::new(), BTreeSet::new());
        for (index, name) in (0..).zip(many.names()) {
            let endpoint = EndpointKey { name: name.clone(), ..many.request.endpoint.clone() };
            let Reply::Given { repeated, addresses } =
                draft.allocate(&Allocate { endpoint, ..many.request.clone() })?
            else {
                panic!("nothing of many waits")
            };
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
            let said = self.release(|one| one.id == id.get());
            if let Reply::Released(addresses) = self.give_up_preallocated(said) {
                all.extend(addresses);
            }
        }
        Reply::ReleasedMany { addresses: all, gone }
    }
}
