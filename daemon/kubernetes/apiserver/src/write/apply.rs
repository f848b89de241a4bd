//! Writes of applied configurations.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::create::create;
use super::object::{check_type, find};
use super::update::update;
use crate::merge::{Applier, Shape, apply};
use crate::options::Options;
use crate::path::Place;
use crate::server::State;
use crate::status::Refusal;

/// Applies a configuration. An absent object is created.
///
/// # Errors
/// 400, 404, 409 or 422.
pub(crate) fn write_applied(
    state: &mut State,
    place: &Place,
    config: &Value,
    options: &mut Options,
) -> Result<(StatusCode, Value), Refusal> {
    check_type(config, place)?;
    if config["apiVersion"].is_null() || config["kind"].is_null() {
        return Err(Refusal::new(400, "apiVersion and kind must be set in an applied configuration"));
    }
    if !config["metadata"]["managedFields"].is_null() {
        return Err(Refusal::new(400, "metadata.managedFields must be nil"));
    }
    let present = find(&state.store, place);
    let mut config = config.clone();
    let is_status = place.subresource.is_some();
    if let Some(fields) = config.as_object_mut() {
        fields.retain(|field, _| match field.as_str() {
            "apiVersion" | "kind" | "metadata" => true,
            "status" => is_status || !place.has_status,
            _ => !is_status,
        });
    }
    if is_status {
        config["metadata"] = json!({});
    }
    let now = state.clock.stamp();
    let (name, subresource) = (options.manager.clone(), place.subresource.clone().unwrap_or_default());
    let applier = Applier { name: &name, subresource: &subresource, now: &now, force: options.force };
    match present {
        Ok((_, present)) => {
            let next = apply(Some(&present), &config, applier, Shape::of(place))?;
            Ok((StatusCode::OK, update(state, place, next, options)?))
        }
        Err(refusal) if is_status => Err(refusal),
        Err(_) => {
            let mut object = apply(None, &config, applier, Shape::of(place))?;
            object["metadata"]["name"] = place.name.as_deref().unwrap_or_default().into();
            let collection = Place { name: None, ..place.clone() };
            Ok((StatusCode::CREATED, create(state, &collection, object, options)?))
        }
    }
}
