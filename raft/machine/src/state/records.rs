//! Records: reservations that document the addresses of an endpoint.

use crate::state::State;
use crate::state::id::{Id, NetworkId, ReservationId};
use crate::state::row::Reservation;
use ipam_api::address::AddressRange;
use ipam_api::limits::RECORDED_ADDRESSES_MAX;
use ipam_api::resource::EndpointKey;
use std::net::IpAddr;

/// Distance of the ends of the longest range with an endpoint.
const SPAN_MAX: u128 = RECORDED_ADDRESSES_MAX as u128 - 1;

impl State {
    /// Reservations that record addresses of a range for an endpoint; one with several ranges more than once.
    pub fn records_in(
        &self,
        network: NetworkId,
        range: AddressRange,
    ) -> impl Iterator<Item = (ReservationId, &Reservation)> {
        let from = (network, range.family(), range.first().saturating_sub(SPAN_MAX), 0, Id::MIN);
        let to = (network, range.family(), range.last(), u128::MAX, Id::MAX);
        let near = self.index.records.range(from..=to);
        let overlapping = near.filter(move |(_, _, _, last, _)| *last >= range.first());
        overlapping.filter_map(|(.., id)| self.reservations.get(*id).map(|row| (*id, row)))
    }

    /// Reservations that record addresses of an endpoint, the oldest first.
    pub fn records_of(&self, key: &EndpointKey) -> impl Iterator<Item = (ReservationId, &Reservation)> {
        let ids = self.index.records_of.range((key.clone(), Id::MIN)..=(key.clone(), Id::MAX));
        ids.filter_map(|(_, id)| self.reservations.get(*id).map(|row| (*id, row)))
    }

    /// Addresses that a reservation records for its endpoint and that another endpoint holds.
    pub fn record_conflicts(&self, row: &Reservation) -> impl Iterator<Item = IpAddr> {
        let endpoint = row.spec.endpoint.clone();
        let ranges = if endpoint.is_some() { row.spec.addresses.clone() } else { Vec::new() };
        let network = row.network;
        let addresses = ranges
            .into_iter()
            .flat_map(move |range| self.occupied(network, range).map(|(address, _)| address));
        addresses.filter(move |address| {
            let holder = self.allocation_at(network, *address).map(|(_, row)| row.endpoint);
            holder.is_some_and(|holder| Some(&self.endpoints.named(holder).key) != endpoint.as_ref())
        })
    }
}
