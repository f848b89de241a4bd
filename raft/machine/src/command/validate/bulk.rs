//! Checks of requests for many endpoints or allocations.

use crate::command::AllocateMany;
use crate::command::validate::within;
use crate::value::cause::Counted;
use crate::value::id::AllocationId;
use crate::value::{Cause, InterfaceRequest, Refusal, refuse_if};
use ipam_api::limits::{BULK_ALLOCATIONS_MAX, BULK_ENDPOINTS_MAX};
use std::collections::BTreeMap;

impl AllocateMany {
    pub(super) fn check(&self) -> Result<(), Refusal> {
        within(Counted::BulkEndpoints, self.names().count(), BULK_ENDPOINTS_MAX)?;
        self.request.check()?;
        let request = &self.request;
        let names_one = |interface: &InterfaceRequest| {
            !interface.addresses.is_empty() || interface.mac.is_some() || !interface.link_addresses.is_empty()
        };
        let is_of_one = request.uid.is_some()
            || request.attachment.is_some()
            || request.options.adopt
            || request.options.wait
            || request.options.take_over
            || request.options.metadata.hostname.is_some()
            || !request.routing.is_empty()
            || request.interfaces.iter().any(names_one);
        refuse_if(is_of_one, || Cause::FieldOfOneEndpoint)?;
        self.check_names()
    }

    /// Refuses an endpoint that is named twice: all of its incarnations would be examined each time.
    fn check_names(&self) -> Result<(), Refusal> {
        let mut seen = BTreeMap::new();
        for (second, name) in (0_u32..).zip(self.names()) {
            if let Some(first) = seen.insert(name, second) {
                return Err(Cause::EndpointTwice { name: name.clone(), first, second }.into());
            }
        }
        Ok(())
    }
}

pub(super) fn check_release(ids: &[AllocationId]) -> Result<(), Refusal> {
    within(Counted::BulkAllocations, ids.len(), BULK_ALLOCATIONS_MAX)
}
