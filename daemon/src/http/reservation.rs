//! `/v1/reservations`.

use ipam_api::address::AddressRange;
use ipam_api::name::ResourceName;
use ipam_api::resource::{Labels, Reservation, ReservationStatus, Resource};
use ipam_raft::machine::command::{Expect, Kind, Put, ReservationIntention, Stored};
use ipam_raft::machine::state::Occupant;
use ipam_raft::machine::{Action, State, model};

use super::convert::{labels, meta, remarks};
use super::list::{Field, Shape};
use super::resource::Kinded;

/// Reservations.
pub(super) struct Reservations;

/// What can be asked of the list.
pub(super) const SHAPE: Shape = Shape {
    path: "/v1/reservations",
    fields: &[
        Field::text("name", "name"),
        Field::text("network", "network"),
        Field::number("held", "status.held"),
        Field::text("managed_by", "managed_by"),
        Field::number("id", "meta.id"),
        Field::number("revision", "meta.revision"),
        Field::text("created_at", "meta.created_at"),
        Field::text("created_by", "meta.created_by"),
        Field::text("updated_at", "meta.updated_at"),
        Field::text("updated_by", "meta.updated_by"),
    ],
    shown: &[
        "name",
        "network",
        "addresses",
        "status",
        "status.held",
        "description",
        "labels",
        "annotations",
        "managed_by",
        "meta",
        "meta.id",
        "meta.revision",
        "meta.created_at",
        "meta.created_by",
        "meta.updated_at",
        "meta.updated_by",
    ],
    labelled: true,
    addressed: true,
};

impl Kinded for Reservations {
    const PATH: &'static str = "reservations";
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
        state.reservations.get(id)
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
