//! `/v1/reservations`.

use ipam_api::address::AddressRange;
use ipam_api::name::ResourceName;
use ipam_api::resource::{Labels, Reservation, ReservationStatus, Resource};
use ipam_machine::command::{Expect, Kind, Put, ReservationIntention, Stored};
use ipam_machine::state::Occupant;
use ipam_machine::{Action, State, model};

use super::named::Kinded;
use crate::http::convert::{labels, meta, remarks};
use crate::http::list::{Row, Shape};

/// Reservations.
pub(in crate::http) struct Reservations;

/// What can be asked of the list.
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

impl Kinded for Reservations {
    const KIND: Kind = Kind::Reservation;
    type Intention = Reservation;
    type Status = ReservationStatus;
    type Row = model::Reservation;
    const SHAPE: &'static Shape = &SHAPE;

    fn name(intention: &Reservation) -> ResourceName {
        (&intention.name).into()
    }

    fn put(reservation: Reservation, expect: Expect) -> Action {
        let Reservation { name, network, addresses, description, labels, annotations, managed_by } =
            reservation;
        let remarks = remarks(description, labels, annotations, managed_by);
        Action::PutReservation(Put {
            intention: ReservationIntention { name, network, addresses, remarks },
            expect,
        })
    }

    fn labels(intention: &Reservation) -> &Labels {
        &intention.labels
    }

    fn ranges(reservation: &Resource<Reservation, ReservationStatus>) -> Vec<AddressRange> {
        reservation.intention.addresses.clone()
    }

    fn row(state: &State, id: u64) -> Option<&model::Reservation> {
        state.reservations.get(id.into())
    }

    fn stored(stored: Stored) -> Option<model::Reservation> {
        match stored {
            Stored::Reservation(row) => Some(row),
            _ => None,
        }
    }

    fn view(state: &State, row: &model::Reservation) -> Resource<Reservation, ReservationStatus> {
        let ReservationIntention { name, network, addresses, remarks } = &row.intention;
        let intention = Reservation {
            name: name.clone(),
            network: network.clone(),
            addresses: addresses.clone(),
            description: remarks.description.to_string(),
            labels: labels(&remarks.labels),
            annotations: labels(&remarks.annotations),
            managed_by: remarks.managed_by.as_ref().map(ToString::to_string),
        };
        let held = addresses
            .iter()
            .flat_map(|range| state.occupied(row.network, *range))
            .filter(|(_, occupant)| matches!(occupant, Occupant::Allocation(_)))
            .count();
        Resource { intention, meta: meta(&row.meta), status: ReservationStatus { held: held as u64 } }
    }
}
