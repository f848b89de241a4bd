//! The model's interfaces that wait for their own ADD.

use ipam_api::resource::Lifecycle;
use ipam_machine::command::{Allocate, InterfaceRequest};

use crate::model::naive::{Held, Incarnation, Model, Reply, Spot};

/// Existing addresses of an endpoint on an interface.
pub(crate) enum Found {
    /// Nothing that would do as it is.
    Nothing,
    /// Enough: its own ADD has it, or will.
    Enough,
    /// All of it, and this ADD is the one that it waits for.
    Waiting(Vec<Held>),
}

/// True if the interface is the attachment's own.
pub(crate) fn own(request: &Allocate, interface: &InterfaceRequest) -> bool {
    request.attachment.as_ref().is_none_or(|key| key.interface == interface.name)
}

/// True if this ADD may claim the address, given the same endpoint.
pub(crate) fn waits_for(one: &Held, request: &Allocate) -> bool {
    let Some(key) = &request.attachment else { return false };
    let node = request.node.as_ref().unwrap_or(&key.node);
    one.attachments.is_empty()
        && one.lifecycle == Lifecycle::Attached
        && one.interface == key.interface
        && one.node.as_ref() == Some(node)
}

impl Model {
    pub(crate) fn found(
        &self,
        request: &Allocate,
        meant: Option<&Incarnation>,
        interface: &InterfaceRequest,
    ) -> Found {
        let sticky = Model::keeps(request, meant);
        let (Some(meant), Some(_)) = (meant, &request.attachment) else { return Found::Nothing };
        let of_it = self.held.iter().filter(|one| {
            (one.endpoint, one.lifecycle) == (meant.number, Lifecycle::Attached)
                && one.interface == interface.name
        });
        let of_it: Vec<Held> = of_it.cloned().collect();
        if !own(request, interface) {
            let settled = of_it.iter().any(|one| !sticky || !one.attachments.is_empty());
            return if settled { Found::Enough } else { Found::Nothing };
        }
        let waiting: Vec<Held> = of_it.into_iter().filter(|one| !sticky && waits_for(one, request)).collect();
        let fits = self.as_requested(&waiting, interface) && self.in_subnets(&waiting, interface);
        if waiting.is_empty() || !fits { Found::Nothing } else { Found::Waiting(waiting) }
    }

    /// Addresses of an answer: those attached here on the attachment's interface, all on others.
    pub(crate) fn asked_for(&self, request: &Allocate, endpoint: u64, claimed: Vec<Held>) -> Vec<Held> {
        let Some(key) = &request.attachment else { return claimed };
        let is_named =
            |one: &Held| request.interfaces.iter().any(|interface| interface.name == one.interface);
        let is_sticky = self.endpoints.iter().any(|one| one.number == endpoint && one.sticky.is_some());
        let is_shown = |one: &&Held| {
            one.endpoint == endpoint
                && match one.interface == key.interface {
                    true => one.attachments.contains(key),
                    false => match one.lifecycle {
                        Lifecycle::Attached => is_named(one),
                        Lifecycle::Held => is_sticky && is_named(one),
                        Lifecycle::Leased => false,
                    },
                }
        };
        self.held.iter().filter(is_shown).cloned().collect()
    }

    /// Endpoints that are attached nowhere claim nothing any more; what they had not claimed is free.
    pub(crate) fn give_up_preallocated(&mut self, said: Reply) -> Reply {
        let Reply::Released(mut addresses) = said else { return said };
        let is_given_up = |one: &&Held| {
            let endpoint = self.endpoints.iter().find(|other| other.number == one.endpoint);
            let mut all = self.held.iter().filter(|other| other.endpoint == one.endpoint);
            one.lifecycle == Lifecycle::Attached
                && endpoint.expect("it has one").sticky.is_none()
                && all.all(|other| other.attachments.is_empty())
        };
        let spots: Vec<Spot> = self.held.iter().filter(is_given_up).map(Held::spot).collect();
        if let Reply::Released(more) = self.release(|one| spots.contains(&one.spot())) {
            addresses.extend(more);
        }
        Reply::Released(addresses)
    }
}
