//! Reservations.

use ipam_api::resource::{Reservation, ReservationStatus};
use serde_json::{Value, json};

use super::facts::CustomFacts;
use super::kind::CustomKind;
use super::views::CustomViews;
use crate::mirror::Mirrored;

/// Reservations.
#[derive(Debug)]
pub(crate) struct Reservations;

impl CustomKind for Reservations {
    type Spec = Reservation;
    type Status = ReservationStatus;
    const KIND: &'static str = "Reservation";
    const PLURAL: &'static str = "reservations";

    fn view(views: &mut CustomViews) -> &mut Mirrored<CustomFacts<Reservation>> {
        &mut views.reservations
    }

    fn name(spec: &Reservation) -> &str {
        spec.name.as_str()
    }

    fn manager(spec: &Reservation) -> Option<&str> {
        spec.managed_by.as_deref()
    }

    fn shown(status: &ReservationStatus) -> Value {
        json!({"held": status.held})
    }
}
