//! Reservations: addresses that no pool allocates. A reservation doesn't affect present holders.
//!
//! A reservation with an endpoint records addresses that the endpoint uses without an allocation, in a pool
//! or outside all pools.

use crate::apply::step::Step;
use crate::command::{Answer, Cause, Expect, Kind, Put, Refusal, ReservationSpec, Stored};
use crate::event::field_change::changes;
use crate::resource::described::check_room;
use crate::state::id::{NetworkId, PoolId, ReservationId, SubnetId};
use crate::state::refuse::{check_expected, immutable};
use crate::state::row::Reservation;
use crate::value::cause::Constant;
use ipam_api::address::AddressRange;
use ipam_api::name::ResourceName;
use ipam_api::resource::EndpointKey;
use ipam_api::{Family, RangeSet};

impl Step<'_> {
    pub(crate) fn put_reservation(&mut self, put: &Put<ReservationSpec>) -> Result<Answer, Refusal> {
        let (kind, spec) = (Kind::Reservation, &put.spec);
        let old = self.state.find_row::<Reservation>(&spec.name);
        check_expected(kind, &spec.name, old.map(|(_, row)| &row.meta), put.expect)?;
        if let Some((id, old)) = old.map(|(id, row)| (id, row.clone())) {
            if old.spec == *spec {
                return Ok(Answer::unchanged(&old.meta, Stored::Reservation(old.clone())));
            }
            self.check_manager(kind, &spec.name)?;
            if old.spec.network != spec.network {
                return Err(immutable(kind, &spec.name, Constant::Network(old.spec.network.clone())));
            }
            self.check_record(old.network, spec, Some((id, &old.spec)))?;
            let changes = changes(&old.spec, spec);
            return Ok(self.change(kind, &spec.name, &old.meta, changes, |step, meta| {
                let row = Reservation { meta, spec: spec.clone(), network: old.network };
                step.state.write(id, row.clone());
                step.apply_reservations(old.network, &[&old.spec.addresses, &spec.addresses]);
                Stored::Reservation(row)
            }));
        }
        let network = self.state.network_named(&spec.network)?;
        self.check_record(network, spec, None)?;
        check_room(self.state.reservations.len(), kind)?;
        let row = |meta| Reservation { meta, spec: spec.clone(), network };
        let answer = self.create(&spec.name, row, Stored::Reservation);
        self.apply_reservations(network, &[&spec.addresses]);
        Ok(answer)
    }

    pub(crate) fn delete_reservation(
        &mut self,
        name: &ResourceName,
        expect: Expect,
    ) -> Result<Answer, Refusal> {
        let id = self.to_write::<Reservation>(name, expect)?;
        let row = self.delete(id, name);
        self.apply_reservations(row.network, &[&row.spec.addresses]);
        Ok(Answer::Gone)
    }

    /// Refuses to record addresses that another endpoint has, by an allocation or by a record.
    fn check_record(
        &self,
        network: NetworkId,
        spec: &ReservationSpec,
        old: Option<(ReservationId, &ReservationSpec)>,
    ) -> Result<(), Refusal> {
        let Some(endpoint) = &spec.endpoint else { return Ok(()) };
        // A conflict that arose later is shown, and does not prevent other changes.
        let known = old.filter(|(_, old)| old.endpoint == spec.endpoint);
        let known = known.map_or(&[][..], |(_, old)| &old.addresses);
        for family in Family::BOTH {
            let added = RangeSet::new(family, &spec.addresses).minus(&RangeSet::new(family, known));
            for range in added.ranges() {
                self.check_recorded(network, endpoint, range, old.map(|(id, _)| id))?;
            }
        }
        self.work.check()
    }

    fn check_recorded(
        &self,
        network: NetworkId,
        endpoint: &EndpointKey,
        range: AddressRange,
        own: Option<ReservationId>,
    ) -> Result<(), Refusal> {
        for (address, _) in self.state.occupied(network, range) {
            let Some((id, row)) = self.state.allocation_at(network, address) else { continue };
            if self.state.endpoints.named(row.endpoint).key != *endpoint {
                let (holder, allocation) = (self.state.holder(row.endpoint), id.get());
                return Err(Cause::RecordHeld { address, holder, allocation }.into());
            }
        }
        let records = self.state.records_in(network, range).take_while(|_| self.work.take(1));
        let mut others = records.filter(|(id, _)| Some(*id) != own);
        let other = others.find_map(|(_, row)| {
            let other = row.spec.endpoint.as_ref().filter(|other| *other != endpoint)?;
            let overlaps = |one: &&AddressRange| {
                one.family() == range.family() && one.first() <= range.last() && range.first() <= one.last()
            };
            let first = row.spec.addresses.iter().find(overlaps)?.first().max(range.first());
            let (address, reservation) = (range.family().address(first), row.spec.name.clone());
            Some(Cause::RecordedForAnother { address, reservation, endpoint: other.clone() })
        });
        other.map_or(Ok(()), |cause| Err(cause.into()))
    }

    /// Brings the pools that have addresses in `touched` up to date.
    fn apply_reservations(&mut self, network: NetworkId, touched: &[&[AddressRange]]) {
        self.state.index_reservations(network);
        let mut subnets: Vec<SubnetId> = Vec::new();
        for range in touched.iter().copied().flatten() {
            let at = |number| (network, range.family(), number);
            let reaches = |id: &SubnetId| {
                let cidr = AddressRange::of_cidr(self.state.subnets.named(*id).spec.cidr);
                cidr.last() >= range.first()
            };
            let starts = &self.state.index.subnet_starts;
            let touched = starts.overlapping(at(0), at(range.first()), at(range.last()), reaches);
            subnets.extend(touched.map(|(_, id)| *id));
        }
        subnets.sort_unstable();
        subnets.dedup();
        for id in subnets {
            let subnet = self.state.subnets.named(id).clone();
            let pools: Vec<PoolId> = self.state.pools_of(id).collect();
            for pool in pools {
                self.reshape(pool, &subnet);
            }
        }
    }
}
