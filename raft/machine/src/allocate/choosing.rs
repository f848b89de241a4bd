//! Choice of a request's addresses on the present state: all of them, or the reason of the refusal.

use crate::allocate::course::Courses;
use crate::allocate::pick::{Claimed, Pick, Taken};
use crate::allocate::preallocated::Needs;
use crate::allocate::routing::RouteConfigs;
use crate::allocate::selectors::Requester;
use crate::apply::work::{Search, Work};
use crate::command::{Allocate, Cause, Grant, InterfaceRequest, Refusal};
use crate::state::State;
use crate::state::id::{AllocationId, AttachmentId, EndpointId};
use crate::state::row::{Allocation, Endpoint};
use ipam_api::Family;
use ipam_api::limits::ALLOCATIONS_PER_ENDPOINT_MAX;
use ipam_api::resource::Lifecycle;

/// Read-only view of the state for one request. The whole plan is complete before the first write.
#[derive(Clone, Copy)]
pub(crate) struct Choosing<'a> {
    pub(crate) state: &'a State,
    pub(crate) request: &'a Allocate,
    /// Endpoint before the request, if it exists.
    pub(crate) row: Option<&'a Endpoint>,
    pub(crate) grant: &'a Grant,
    pub(crate) work: &'a Work,
}

impl<'a> Choosing<'a> {
    pub(crate) fn of(
        state: &'a State,
        request: &'a Allocate,
        endpoint: Option<EndpointId>,
        Search { grant, work }: Search<'a>,
    ) -> Self {
        let row = endpoint.and_then(|id| state.endpoints.get(id));
        Self { state, request, row, grant, work }
    }

    /// Returns the properties of a requested interface that pools select by.
    pub(crate) fn requester(self, interface: &'a InterfaceRequest) -> Requester<'a> {
        Requester::of(self.state, self.request, interface)
    }

    /// Returns true if the endpoint is sticky, so that it keeps its allocations.
    pub(super) fn is_sticky(self) -> bool {
        self.request.is_sticky_for(self.row)
    }

    /// Chooses an address for every interface and family, or reuses one of the endpoint's.
    pub(super) fn plan(self) -> Result<Plan, Refusal> {
        let plan = self.plan_all();
        // The budget is checked first: a search that it cut short has no valid result.
        self.work.check()?;
        plan
    }

    fn plan_all(self) -> Result<Plan, Refusal> {
        let Self { request, row, .. } = self;
        let (mut picks, mut reused, mut kept) = (Vec::new(), Vec::new(), Vec::new());
        let mut searched = Vec::new();
        let asked = self.asked_by_value();
        let mut courses = Courses::default();
        for (place, interface) in request.interfaces.iter().enumerate() {
            let portable = match self.needs(interface) {
                Needs::Nothing => continue,
                Needs::Claims(ids) => {
                    reused.extend(ids);
                    continue;
                }
                Needs::Addresses(portable) => portable,
            };
            searched.push(&interface.name);
            let taken = if request.options.adopt {
                self.pick_adopted(interface, &portable, &picks)?
            } else {
                let claimed = Claimed { picked: &picks, asked: &asked, place };
                self.pick_for(self.requester(interface), &portable, claimed, &mut courses)?
            };
            for one in taken {
                match one {
                    Taken::New(pick) => picks.push(pick),
                    Taken::Reused(id) if request.is_own(&interface.name) => reused.push(id),
                    Taken::Reused(id) => kept.push(id),
                }
            }
        }
        let held = row.map_or(0, |row| row.allocations.len());
        if held + picks.len() > ALLOCATIONS_PER_ENDPOINT_MAX {
            let endpoint = request.endpoint.clone();
            return Err(Cause::TooManyAllocations { endpoint, held: held as u64 }.into());
        }
        kept.extend_from_slice(&reused);
        let mut left = match self.is_sticky() {
            true => self.left_behind(&kept, &searched),
            false => self.preallocated_and_unwanted(&kept),
        };
        self.limit_plan(&picks, &mut left)?;
        self.check_portable(&reused, &left)?;
        self.check_quota(&picks, &left)?;
        let route_configs = self.route_configs(&picks, &reused, &left)?;
        let updated_endpoint = row.map(|row| match self.state.is_fixed_for(self.grant, row) {
            true => row.clone(),
            false => request.updated_endpoint(row),
        });
        Ok(Plan { updated_endpoint, picks, reused, left, route_configs })
    }

    /// Allocations of an earlier equal request: by attachment, else by endpoint and interface.
    pub(super) fn given_before(self) -> Result<Option<Before>, Refusal> {
        let request = self.request;
        if let Some(key) = &request.attachment {
            let Some((id, row)) = self.state.attachment(key) else { return Ok(None) };
            let owner = self.state.endpoints.get(row.endpoint);
            let same = owner.is_some_and(|owner| {
                let same_incarnation =
                    request.uid.is_none() || request.uid == owner.uid || owner.sticky.is_some();
                owner.key == request.endpoint && same_incarnation
            });
            if same {
                return Ok(Some((self.state.asked_for(request, row.endpoint, id), Some(id))));
            }
            return Err(Cause::AttachmentOfAnother {
                attachment: key.clone(),
                holder: self.state.holder(row.endpoint),
                is_incarnation: owner.is_some_and(|owner| owner.key == request.endpoint),
            }
            .into());
        }
        // A sticky endpoint reuses its allocations, and may change the rest.
        let Some(endpoint) = self.row.filter(|_| !self.is_sticky()) else { return Ok(None) };
        let mut ids = Vec::new();
        let mut missing = 0;
        for interface in &request.interfaces {
            let held = self.state.filter_allocations(&endpoint.allocations, |row| {
                row.lifecycle != Lifecycle::Attached && row.interface == interface.name
            });
            let other = held.iter().filter_map(|id| self.state.allocations.get(*id));
            let other = other.map(|row| row.lifecycle).find(|lifecycle| *lifecycle != request.lifecycle);
            if held.is_empty() {
                missing += 1;
            } else if let Some(other) = other {
                return Err(Cause::OtherLifecycle {
                    endpoint: request.endpoint.clone(),
                    interface: interface.name.clone(),
                    present: other,
                    asked: request.lifecycle,
                }
                .into());
            } else if !self.satisfies(&held, interface) {
                let (endpoint, interface) = (request.endpoint.clone(), interface.name.clone());
                return Err(Cause::OtherAddresses { endpoint, interface }.into());
            }
            ids.extend(held);
        }
        match (ids.is_empty(), missing) {
            (true, _) => Ok(None),
            (false, 0) => Ok(Some((ids, None))),
            (false, _) => Err(Cause::SomeInterfaces { endpoint: request.endpoint.clone() }.into()),
        }
    }

    /// Returns true if the held addresses satisfy the interface's request.
    pub(super) fn satisfies(self, held: &[AllocationId], request: &InterfaceRequest) -> bool {
        let rows = || held.iter().filter_map(|id| self.state.allocations.get(*id));
        let allowed = |row: &Allocation| {
            let Some(pool) = self.state.pools.get(row.pool).map(|pool| &pool.spec) else { return false };
            if !request.subnets.is_empty() {
                return request.subnets.contains(&pool.subnet);
            }
            let family = Family::of(row.address);
            let names = request.pools.of(family);
            request.pools.is_empty()
                || names.iter().any(|pattern| pattern.fits(&pool.name))
                || self.stands_in_for(&pool.name, family, names)
        };
        let has = |family| rows().any(|row| Family::of(row.address) == family);
        let named = |family| request.subnets.is_empty() && !request.pools.of(family).is_empty();
        let covers = |family| !named(family) || !request.takes(family) || has(family);
        rows().all(allowed)
            && (request.families.is_empty()
                || Family::BOTH.iter().all(|one| request.takes(*one) == has(*one)))
            && Family::BOTH.into_iter().all(covers)
            && request.addresses.iter().all(|address| rows().any(|row| row.address == *address))
    }
}

/// Outcome of a choice, before anything is written.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Row of the endpoint after the request, except for its allocations.
    pub(super) updated_endpoint: Option<Endpoint>,
    /// Newly chosen addresses.
    pub(super) picks: Vec<Pick>,
    /// Existing allocations of the endpoint that the attachment reuses.
    pub(super) reused: Vec<AllocationId>,
    /// Allocations that the request ends.
    pub(super) left: Vec<AllocationId>,
    /// Routing that is kept.
    pub(super) route_configs: RouteConfigs,
}

/// Allocations of an earlier request, and its attachment.
type Before = (Vec<AllocationId>, Option<AttachmentId>);
