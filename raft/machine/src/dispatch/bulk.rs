//! Bulk allocation and release: one draft for many endpoints or allocations.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipam_api::limits::RESPONSE_BYTES_MAX;
use postcard::experimental::serialized_size;

use crate::allocate::request::Served;
use crate::apply::step::Step;
use crate::command::{Action, Allocate, AllocateMany, AllocatedMany, Answer, Cause, GivenTo, Refusal};
use crate::state::id::{AllocationId, PoolId};
use crate::value::refuse_if;

impl Step<'_> {
    /// Allocates to all endpoints of a request, or to none.
    pub(super) fn allocate_many(&mut self, many: &AllocateMany) -> Result<Answer, Refusal> {
        let outer = self.work.begin_rows();
        let answer = self.on_draft(|step| step.allocate_each(many))?;
        self.work.end_rows(outer);
        Ok(Answer::AllocatedMany(answer))
    }

    fn allocate_each(&mut self, many: &AllocateMany) -> Result<AllocatedMany, Refusal> {
        let mut request = many.request.clone();
        let (mut answer, mut pools) = (AllocatedMany::default(), Vec::new());
        for (endpoint, name) in (0_u32..).zip(many.names()) {
            request.endpoint.name = name.clone();
            let next = self.allocate_next(&request);
            let (repeated, ids) = next.map_err(|refusal| Refusal { step: Some(endpoint), ..refusal })?;
            answer.repeated.extend(repeated.then_some(endpoint));
            self.list(endpoint, &ids, &mut answer, &mut pools);
        }
        // `serialized_size` doesn't fail for a value that postcard encodes.
        let bytes = serialized_size(&answer).unwrap_or(RESPONSE_BYTES_MAX + 1) as u64;
        if bytes > RESPONSE_BYTES_MAX as u64 {
            let steps = many.names().count() as u64;
            return Err(Cause::ResponseSize { bytes, done: steps, steps }.into());
        }
        Ok(answer)
    }

    /// Allocates to one endpoint, or finds its allocations, with the rights and limits of a single request.
    fn allocate_next(&mut self, request: &Allocate) -> Result<(bool, Vec<AllocationId>), Refusal> {
        self.permit_request(request)?;
        let served = self.allocate_in_budget(request)?;
        self.count_rows()?;
        match served {
            Served::Held { repeated, ids, .. } => {
                // A repetition writes nothing, but examining it costs work.
                self.work.take(u64::from(repeated));
                self.work.check()?;
                self.check_routes(request, &ids)?;
                Ok((repeated, ids))
            }
            // Requests that may wait were refused earlier.
            Served::Waits(pending) => Err(Refusal::from(*pending.cause)),
        }
    }

    /// Refuses addresses with other routes than those of their pools: the answer has no field for them.
    fn check_routes(&self, request: &Allocate, ids: &[AllocationId]) -> Result<(), Refusal> {
        let has_own = |id: &AllocationId| self.state.allocations.named(*id).route_config.is_some();
        refuse_if(ids.iter().any(has_own), || Cause::OwnRoutes { endpoint: request.endpoint.clone() })
    }

    /// Lists the addresses of an endpoint, and each pool once. `pools` has the ids of the answer's pools.
    fn list(&self, endpoint: u32, ids: &[AllocationId], answer: &mut AllocatedMany, pools: &mut Vec<PoolId>) {
        for id in ids {
            let row = self.state.allocations.named(*id);
            let pool = pools.iter().position(|known| *known == row.pool).unwrap_or_else(|| {
                pools.push(row.pool);
                answer.pools.push(self.state.given_pool(row.pool));
                pools.len() - 1
            });
            let pool = u32::try_from(pool).unwrap_or(u32::MAX);
            answer.addresses.push(GivenTo { endpoint, allocation: *id, address: row.address, pool });
        }
    }

    /// Releases all listed allocations, or none. Already released ones are only counted.
    pub(super) fn release_allocations(&mut self, ids: &[AllocationId]) -> Result<Answer, Refusal> {
        let outer = self.work.begin_rows();
        let answer = self.on_draft(|step| step.release_each(ids))?;
        self.work.end_rows(outer);
        Ok(answer)
    }

    fn release_each(&mut self, ids: &[AllocationId]) -> Result<Answer, Refusal> {
        let (mut addresses, mut gone) = (Vec::with_capacity(ids.len()), 0);
        let mut endpoints = BTreeSet::new();
        for (number, id) in (0_u32..).zip(ids) {
            let Some(endpoint) = self.state.allocations.get(*id).map(|row| row.endpoint) else {
                // An already released allocation writes nothing, but its lookup costs work.
                self.work.take_reads(1);
                self.work.check()?;
                gone += 1;
                continue;
            };
            let released = self.release_next(*id);
            addresses.extend(released.map_err(|refusal| Refusal { step: Some(number), ..refusal })?);
            endpoints.insert(endpoint);
        }
        // Count once for each endpoint, because all of its other allocations are examined.
        for endpoint in endpoints {
            let held = self.state.endpoints.get(endpoint).map_or(0, |row| row.allocations.len());
            self.work.take_reads(held);
            addresses.extend(self.release_preallocated(endpoint));
            self.count_rows()?;
        }
        Ok(Answer::AllocationsReleased { addresses, gone })
    }

    fn release_next(&mut self, id: AllocationId) -> Result<Option<IpAddr>, Refusal> {
        self.permitted(&Action::ReleaseAllocation { id })?;
        let address = self.release_listed(id);
        self.count_rows()?;
        Ok(address)
    }
}
