//! `/v1/reservations`.

use std::collections::BTreeSet;

use ipam_api::Name;
use ipam_api::address::AddressRange;
use ipam_api::resource::{EndpointKey, Reservation, ReservationStatus, Resource};
use ipam_machine::State;
use ipam_machine::command::ReservationSpec;
use ipam_machine::state::Occupant;

use super::named::{NamedResource, View, of_kind};
use crate::http::convert::{conversions, meta};
use crate::http::list::{Holds, Row, Shape, Test};

pub(in crate::http) struct Reservations;

/// Fields, filters and orders of the list.
pub(in crate::http) const SHAPE: Shape = Shape {
    path: "/v1/reservations",
    own: &[
        Row::text("name", "name"),
        Row::text("network", "network"),
        Row::shown(&["addresses", "status"]),
        Row::of(Holds::Endpoint, "endpoint", "endpoint"),
        Row::number("held", "status.held"),
        Row::shown(&["status.conflicts"]),
        Row::text("managed_by", "managed_by").unshown(),
    ],
    named: true,
    addressed: true,
};

conversions! { Reservation <=> ReservationSpec { name, network, addresses, endpoint } }

impl NamedResource for Reservations {
    of_kind!(Reservation, ReservationStatus, reservations, PutReservation, |own| (&own.name).into());

    fn ranges(reservation: &View<Self>) -> Vec<AddressRange> {
        reservation.spec.addresses.clone()
    }

    /// Reservations that record addresses of an endpoint, by their names.
    fn narrowed_ids(state: &State, tests: &[Test]) -> Option<Vec<u64>> {
        let keys = tests.iter().find_map(|test| test.texts("endpoint"))?;
        let keys: BTreeSet<EndpointKey> = keys.iter().filter_map(|key| key.parse().ok()).collect();
        let rows = keys.iter().flat_map(|key| state.records_of(key));
        let mut named: Vec<(&Name, u64)> = rows.map(|(id, row)| (&row.spec.name, id.get())).collect();
        named.sort_unstable();
        Some(named.into_iter().map(|(_, id)| id).collect())
    }

    fn view(state: &State, row: &Self::Row) -> View<Self> {
        let held = row
            .spec
            .addresses
            .iter()
            .flat_map(|range| state.occupied(row.network, *range))
            .filter(|(_, occupant)| matches!(occupant, Occupant::Allocation(_)))
            .count();
        let spec = to_json(row.spec.clone());
        let conflicts = state.record_conflicts(row).collect();
        Resource { spec, meta: meta(&row.meta), status: ReservationStatus { held: held as u64, conflicts } }
    }
}
