//! `/v1/reservations`.

use ipam_api::name::Name;
use ipam_api::resource::{Reservation, ReservationStatus, Resource};
use ipam_raft::machine::command::{Expect, Kind, Put, ReservationIntention, Stored};
use ipam_raft::machine::state::Occupant;
use ipam_raft::machine::{Action, State, model};

use super::convert::{labels, meta, remarks};
use super::resource::Kinded;

/// Reservations.
pub(super) struct Reservations;

impl Kinded for Reservations {
    const PATH: &'static str = "reservations";
    const KIND: Kind = Kind::Reservation;
    type Intention = Reservation;
    type Status = ReservationStatus;
    type Row = model::Reservation;

    fn name(intention: &Reservation) -> &Name {
        &intention.name
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
