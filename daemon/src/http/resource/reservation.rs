//! `/v1/reservations`.

use ipam_api::address::AddressRange;
use ipam_api::resource::{Reservation, ReservationStatus, Resource};
use ipam_machine::State;
use ipam_machine::command::ReservationSpec;
use ipam_machine::state::Occupant;

use super::named::{NamedResource, View, of_kind};
use crate::http::convert::{conversions, meta};
use crate::http::list::{Row, Shape};

pub(in crate::http) struct Reservations;

/// Fields, filters and orders of the list.
pub(in crate::http) const SHAPE: Shape = Shape {
    path: "/v1/reservations",
    own: &[
        Row::text("name", "name"),
        Row::text("network", "network"),
        Row::shown(&["addresses", "status"]),
        Row::number("held", "status.held"),
        Row::text("managed_by", "managed_by").unshown(),
    ],
    named: true,
    addressed: true,
};

conversions! { Reservation <=> ReservationSpec { name, network, addresses } }

impl NamedResource for Reservations {
    of_kind!(Reservation, ReservationStatus, reservations, PutReservation, |own| (&own.name).into());

    fn ranges(reservation: &View<Self>) -> Vec<AddressRange> {
        reservation.spec.addresses.clone()
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
        Resource { spec, meta: meta(&row.meta), status: ReservationStatus { held: held as u64 } }
    }
}
