//! Random requests for many endpoints or allocations.

use std::collections::BTreeSet;

use ipam_api::name::ObjectName;
use ipam_api::resource::Lifecycle;
use ipam_machine::Action;
use ipam_machine::command::{Allocate, AllocateMany, Routing};

use super::Draw;

impl Draw<'_> {
    /// The same request for some endpoints of its namespace, rarely for one of them twice.
    pub(super) fn many(&mut self, mut request: Allocate) -> Action {
        (request.uid, request.attachment, request.started) = (None, None, None);
        if request.lifecycle == Lifecycle::Attached {
            request.lifecycle = Lifecycle::Held;
        }
        request.routing = Routing::default();
        request.options.metadata.hostname = None;
        for interface in &mut request.interfaces {
            interface.addresses.clear();
            interface.link_addresses.clear();
            interface.mac = None;
        }
        let names = ["w-0", "w-1", "h0", "x-0", "x-1"];
        let mut others: Vec<ObjectName> =
            (0..self.dice.below(4)).map(|_| self.dice.pick(&names).parse().unwrap()).collect();
        if self.dice.chance(90) {
            let mut seen = BTreeSet::from([request.endpoint.name.clone()]);
            others.retain(|name| seen.insert(name.clone()));
        }
        Action::AllocateMany(Box::new(AllocateMany { request, others }))
    }

    /// Some of the newest allocations, gone ones among them.
    pub(super) fn release_many(&mut self) -> Action {
        let recent: Vec<u64> = self.issued.iter().rev().take(8).copied().collect();
        let ids = (0..self.dice.below(5)).map(|_| {
            let place = usize::try_from(self.dice.below(recent.len() as u64)).unwrap();
            recent[place].into()
        });
        Action::ReleaseAllocations { ids: ids.collect() }
    }
}
