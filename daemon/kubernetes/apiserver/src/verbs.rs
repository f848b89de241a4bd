//! Verbs of requests, and their execution on the state.

use axum::http::{Method, StatusCode};
use serde_json::Value;

use crate::list::{list, list_of};
use crate::options::{Deletion, Options};
use crate::patch::{Format, patched};
use crate::path::Place;
use crate::select::Select;
use crate::server::State;
use crate::status::Refusal;
use crate::write::apply::write_applied;
use crate::write::create::create;
use crate::write::delete::{delete, delete_collection};
use crate::write::object::find;
use crate::write::scale::{scale_of, scaled};
use crate::write::update::update;

/// Verb of RBAC for a request.
///
/// # Errors
/// 405.
pub(crate) fn verb(method: &Method, place: &Place, is_watch: bool) -> Result<&'static str, Refusal> {
    let is_subresource = place.subresource.is_some();
    match (method.as_str(), place.name.is_some()) {
        ("GET", false) if is_watch => Ok("watch"),
        ("GET", false) => Ok("list"),
        // A collection of all namespaces can only be read.
        (_, false) if place.resource.is_namespaced && place.namespace.is_none() => Err(not_allowed()),
        ("GET", true) => Ok("get"),
        ("POST", false) => Ok("create"),
        ("PUT", true) => Ok("update"),
        ("PATCH", true) => Ok("patch"),
        ("DELETE", true) if !is_subresource => Ok("delete"),
        ("DELETE", false) if !place.is("", "namespaces") => Ok("deletecollection"),
        _ => Err(not_allowed()),
    }
}

fn not_allowed() -> Refusal {
    Refusal::new(405, "the server does not allow this method on the requested resource")
}

/// Request after its parts are read.
pub(crate) struct Call<'a> {
    pub(crate) verb: &'static str,
    pub(crate) place: &'a Place,
    pub(crate) query: &'a str,
    pub(crate) body: Value,
    /// Format of a patch.
    pub(crate) format: Option<Format>,
}

/// Executes a request, except for a watch.
///
/// # Errors
/// The refusals of its verb.
pub(crate) fn execute(
    state: &mut State,
    call: Call<'_>,
    options: &mut Options,
) -> Result<(StatusCode, Value), Refusal> {
    let Call { verb, place, query, body, format } = call;
    let answer = match verb {
        "list" => list(state, place, query)?,
        "get" => shown(place, find(&state.store, place)?.1),
        "create" => return Ok((StatusCode::CREATED, create(state, place, body, options)?)),
        "patch" if format == Some(Format::Apply) => return write_applied(state, place, &body, options),
        "update" | "patch" => {
            let present = find(&state.store, place)?.1;
            let seen = shown(place, present.clone());
            let next = match format {
                Some(format) => patched(format, place, &seen, body)?,
                None => body,
            };
            let next = if place.is_scale() { scaled(place, &present, &next)? } else { next };
            shown(place, update(state, place, next, options)?)
        }
        "delete" => delete(state, place, &Deletion::of(query, &body)?)?,
        _ => {
            let select = Select::of(query).map_err(|why| Refusal::new(400, why))?;
            let items = delete_collection(state, place, &select, &Deletion::of(query, &body)?);
            list_of(place, state.store.version, &items)
        }
    };
    Ok((StatusCode::OK, answer))
}

fn shown(place: &Place, object: Value) -> Value {
    if place.is_scale() { scale_of(place, &object) } else { object }
}
