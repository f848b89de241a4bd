//! Incarnations of hosts: an endpoint of kind `host` has one at a time.
//!
//! A host keeps its addresses over reboots and reinstallations, so a new uid (the machine id) is no reason
//! for new addresses. The uid may also belong to another host with the same name, so a request states a
//! takeover explicitly.

use crate::allocate::choosing::Choosing;
use crate::apply::step::Step;
use crate::apply::work::{Search, Work};
use crate::command::{Allocate, Cause, Refusal};
use crate::event::EventKind;
use crate::event::field_change::changes;
use crate::state::State;
use crate::state::id::EndpointId;
use crate::state::row::{Endpoint, WaitTarget};
use ipam_api::resource::EndpointKind;

impl Allocate {
    /// Returns true if the request names the machine of a host.
    fn names_machine(&self) -> bool {
        self.endpoint.kind == EndpointKind::Host && self.uid.is_some()
    }

    /// Returns true if the request means an incarnation with this row.
    pub(crate) fn means(&self, row: &Endpoint) -> bool {
        let is_taken = self.names_machine() && (row.uid.is_none() || self.options.take_over);
        self.uid.is_none() || row.uid == self.uid || is_taken
    }
}

impl State {
    /// Refuses a request of a host whose addresses another machine holds.
    pub(crate) fn check_machine(&self, request: &Allocate, search: Search<'_>) -> Result<(), Refusal> {
        let Search { grant, work } = search;
        if !request.names_machine() {
            return Ok(());
        }
        let mut rows = self.incarnations(&request.endpoint).map(|id| self.endpoints.named(id));
        let other = rows.find(|row| !request.means(row)).and_then(|row| row.uid.clone());
        if let Some(uid) = other {
            let endpoint = request.endpoint.clone();
            return Err(Cause::HostReinstalled { endpoint, uid: uid.excerpt() }.into());
        }
        let Some(row) = self.renamed_by(request, work).map(|id| self.endpoints.named(id)) else {
            return Ok(());
        };
        // A limited token takes over only allocations within its limits.
        self.permit_labels_of(grant, &row.allocations)?;
        let missing = row.waiting.iter().flat_map(|waiting| &waiting.missing);
        let mut pools = missing.filter_map(|(of, _)| match of {
            WaitTarget::Pool(pool) | WaitTarget::Open(pool) => Some(*pool),
            WaitTarget::Block(_) | WaitTarget::Quota(..) => None,
        });
        pools.try_for_each(|pool| self.permit_pool(grant, pool))
    }

    /// Returns true if an earlier request has already allocated the requested addresses.
    pub(crate) fn has_given(&self, request: &Allocate, search: Search<'_>) -> bool {
        let choosing = Choosing::of(self, request, self.incarnation_for(request, search.work), search);
        matches!(choosing.given_before(), Ok(Some(_)))
    }

    /// Incarnation that gets the uid of a request.
    pub(super) fn renamed_by(&self, request: &Allocate, work: &Work) -> Option<EndpointId> {
        if !request.names_machine() {
            return None;
        }
        let id = self.incarnation_for(request, work)?;
        (self.endpoints.named(id).uid != request.uid).then_some(id)
    }
}

impl Step<'_> {
    /// State after the takeover that a request begins with; nothing if there is none.
    pub(crate) fn with_machine_of(&self, request: &Allocate) -> Option<State> {
        let id = self.state.renamed_by(request, self.work)?;
        let mut draft = self.state.clone();
        self.on(&mut draft).take_over(id, request);
        Some(draft)
    }

    /// Gives an incarnation the uid of a request. The claim of another machine ends.
    pub(super) fn take_over(&mut self, id: EndpointId, request: &Allocate) {
        let old = self.state.endpoints.named(id).clone();
        if old.uid.is_some() {
            self.withdraw(&request.endpoint);
        }
        let Some(mut row) = self.state.endpoints.get(id).cloned() else { return };
        row.uid.clone_from(&request.uid);
        let changes = changes(&old, &row);
        self.put_endpoint(id, row);
        self.emit(EventKind::EndpointChanged { endpoint: request.endpoint.clone(), changes });
    }
}
