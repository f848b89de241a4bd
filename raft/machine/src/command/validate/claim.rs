//! Checks of requests that adopt, wait or take over.

use ipam_api::Family;
use ipam_api::resource::EndpointKind;

use crate::value::{Allocate, Cause, Refusal, refuse_if};

/// Refuses to adopt addresses that the request doesn't name.
pub(crate) fn check_adoption(request: &Allocate) -> Result<(), Refusal> {
    for interface in &request.interfaces {
        let has = |family| interface.addresses.iter().any(|address| Family::of(*address) == family);
        let asks = |family| !interface.pools.of(family).is_empty() || interface.families.contains(&family);
        if !interface.subnets.is_empty() {
            return Err(Cause::AdoptsFromSubnet { interface: interface.name.clone() }.into());
        }
        if interface.addresses.is_empty() {
            return Err(Cause::AdoptsNothing { interface: interface.name.clone() }.into());
        }
        if let Some(family) = Family::BOTH.into_iter().find(|family| asks(*family) && !has(*family)) {
            return Err(Cause::AdoptsNoneOfFamily { interface: interface.name.clone(), family }.into());
        }
    }
    Ok(())
}

/// Refuses a takeover of an endpoint that is no host, or without the uid of the new machine.
pub(crate) fn check_take_over(request: &Allocate) -> Result<(), Refusal> {
    let is_machine = request.endpoint.kind == EndpointKind::Host && request.uid.is_some();
    refuse_if(!is_machine, || Cause::TakesOverNoMachine)
}

/// Refuses to let a request wait that could not be served in order.
pub(crate) fn check_wait(request: &Allocate) -> Result<(), Refusal> {
    refuse_if(request.attachment.is_some(), || Cause::AttachmentWaits)?;
    refuse_if(request.options.adopt, || Cause::AdoptionWaits)?;
    let is_on_link = request.interfaces.iter().any(|interface| !interface.link_addresses.is_empty());
    refuse_if(is_on_link, || Cause::LinkWaits)?;
    match request.interfaces.iter().find(|interface| !interface.addresses.is_empty()) {
        Some(interface) => Err(Cause::AddressWaits { interface: interface.name.clone() }.into()),
        None => Ok(()),
    }
}
