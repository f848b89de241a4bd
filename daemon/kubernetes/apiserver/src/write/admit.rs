//! Admission of objects: schemas of custom resources, and definitions.

use serde_json::Value;

use crate::cluster_api::review;
use crate::custom::{Cause, Reason, accept};
use crate::options::{Options, Validation};
use crate::path::Place;
use crate::server::State;
use crate::status::Refusal;

/// Prunes, completes and validates an object on its way into the store.
///
/// # Errors
/// 400 for unknown fields in a strict request, 422 for wrong ones.
pub(super) fn admit(
    state: &State,
    place: &Place,
    present: Option<&Value>,
    object: &mut Value,
    options: &mut Options,
) -> Result<(), Refusal> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let invalid = |causes: Vec<Cause>| Refusal::invalid(place, &name, &causes);
    if place.is_definitions() && place.subresource.is_none() {
        accept(object, present, &state.clock.stamp()).map_err(invalid)?;
    }
    let Some(custom) = &place.custom else { return Ok(()) };
    let unknown = custom.prune(object).into_iter().map(|path| format!("unknown field \"{path}\""));
    let unknown: Vec<String> = unknown.collect();
    match options.validation {
        Validation::Strict if !unknown.is_empty() => return Err(strict(place, &unknown, options)),
        Validation::Warn => options.warnings = unknown,
        _ => {}
    }
    let causes = custom.validate(object, present);
    if !causes.is_empty() {
        return Err(invalid(causes));
    }
    // Fields that the stored version doesn't have are lost.
    *object = custom.shown(&custom.stored(object.take()));
    review(state, place, present, object)
}

fn strict(place: &Place, unknown: &[String], options: &Options) -> Refusal {
    let why = format!("strict decoding error: {}", unknown.join(", "));
    if options.is_patch {
        return Refusal::invalid(place, "", &[Cause::new(Reason::Invalid, "patch", why)]);
    }
    let (kind, version) = (&place.resource.kind, &place.resource.version);
    Refusal::new(400, format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}"))
}
