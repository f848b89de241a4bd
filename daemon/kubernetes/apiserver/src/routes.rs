//! Requests: authentication, faults, and the verb of each method.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request as Received, State};
use axum::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use crate::discovery::discovery;
use crate::list::{list, list_of, partial};
use crate::options::{Deletion, Options, Propagation};
use crate::patch::{Format, patched};
use crate::path::{Place, parameter};
use crate::select::Select;
use crate::server::{Request, Shared};
use crate::status::Refusal;
use crate::watch::watch;
use crate::write::create::create;
use crate::write::delete::{delete, delete_collection};
use crate::write::object::find;
use crate::write::update::update;

/// Bytes of a request, as the real server has them.
const BODY_BYTES_MAX: usize = 3 << 20;
/// Requests that are remembered.
const REQUESTS_MAX: usize = 100_000;

pub(crate) fn router(shared: Arc<Shared>) -> Router {
    Router::new().fallback(serve).with_state(shared)
}

async fn serve(State(shared): State<Arc<Shared>>, request: Received) -> Response {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, BODY_BYTES_MAX).await;
    let delay = shared.lock().faults.delay;
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    let (path, query) = (head.uri.path(), head.uri.query().unwrap_or_default());
    match body {
        Ok(body) => answer(&shared, &head.method, path, query, &head.headers, &body)
            .unwrap_or_else(IntoResponse::into_response),
        Err(_) => Refusal::new(413, "request is too large").into_response(),
    }
}

fn answer(
    shared: &Arc<Shared>,
    method: &Method,
    path: &str,
    query: &str,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Response, Refusal> {
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    authenticate(shared, header(AUTHORIZATION))?;
    let hostility = shared.lock().faults.hostility();
    if let Some((bytes, is_endless)) = hostility {
        return Ok(hostile(bytes, is_endless));
    }
    if let Some(document) = discovery(&shared.lock(), path) {
        return Ok(json_response(StatusCode::OK, &document));
    }
    let place = Place::parse(path, &shared.lock().resources)
        .ok_or_else(|| Refusal::new(404, "the server could not find the requested resource"))?;
    let is_watch = parameter(query, "watch").is_some_and(|value| value != "false" && value != "0");
    let verb = verb(method, &place, is_watch)?;
    note(shared, verb, &place, path, query)?;
    let is_partial = is_partial(header(ACCEPT), verb == "list")?;
    if verb == "watch" {
        let stream = watch(shared, &place, query, is_partial)?;
        return Ok(([(CONTENT_TYPE, "application/json")], stream).into_response());
    }
    let format = (verb == "patch").then(|| Format::of(header(CONTENT_TYPE))).transpose()?;
    let object = match verb {
        "create" | "update" | "patch" => {
            serde_json::from_slice(body).map_err(|error| Refusal::new(400, error.to_string()))?
        }
        _ => serde_json::from_slice(body).unwrap_or(Value::Null),
    };
    let (code, answer) = {
        let mut state = shared.lock();
        let state = &mut *state;
        match verb {
            "list" => (StatusCode::OK, list(state, &place, query)?),
            "get" => (StatusCode::OK, find(&state.store, &place)?.1),
            "create" => (StatusCode::CREATED, create(state, &place, object, &Options::of(query)?)?),
            "update" => (StatusCode::OK, update(state, &place, object, &Options::of(query)?)?),
            "patch" => {
                let present = find(&state.store, &place)?.1;
                let next = patched(format.unwrap_or(Format::Merge), &present, object)?;
                (StatusCode::OK, update(state, &place, next, &Options::of(query)?)?)
            }
            "delete" => {
                let deletion = Deletion::of(query, &object)?;
                let (answer, is_gone) = delete(state, &place, &deletion)?;
                let is_waiting = !is_gone && deletion.propagation == Some(Propagation::Foreground);
                (if is_waiting { StatusCode::ACCEPTED } else { StatusCode::OK }, answer)
            }
            _ => {
                let select = Select::of(query).map_err(|why| Refusal::new(400, why))?;
                let items = delete_collection(state, &place, &select, &Deletion::of(query, &object)?);
                (StatusCode::OK, list_of(&place, state.store.version, &items))
            }
        }
    };
    shared.changed.send_replace(());
    let answer = if is_partial { partial(&answer) } else { answer };
    Ok(json_response(code, &answer))
}

fn json_response(code: StatusCode, document: &Value) -> Response {
    (code, [(CONTENT_TYPE, "application/json")], document.to_string()).into_response()
}

fn authenticate(shared: &Shared, authorization: &str) -> Result<(), Refusal> {
    let state = shared.lock();
    let token = authorization.strip_prefix("Bearer ").unwrap_or_default();
    let is_known = state.tokens.is_empty() || state.tokens.iter().any(|known| known == token);
    if is_known { Ok(()) } else { Err(Refusal::new(401, "Unauthorized")) }
}

fn verb(method: &Method, place: &Place, is_watch: bool) -> Result<&'static str, Refusal> {
    match (method.as_str(), place.name.is_some()) {
        ("GET", false) if is_watch => Ok("watch"),
        ("GET", false) => Ok("list"),
        // A collection of all namespaces can only be read.
        (_, false) if place.resource.is_namespaced && place.namespace.is_none() => Err(not_allowed()),
        ("GET", true) => Ok("get"),
        ("POST", false) => Ok("create"),
        ("PUT", true) => Ok("update"),
        ("PATCH", true) => Ok("patch"),
        ("DELETE", true) => Ok("delete"),
        ("DELETE", false) if !place.is("", "namespaces") => Ok("deletecollection"),
        _ => Err(not_allowed()),
    }
}

fn not_allowed() -> Refusal {
    Refusal::new(405, "the server does not allow this method on the requested resource")
}

/// Returns true if a client asks for metadata alone.
fn is_partial(accept: &str, is_list: bool) -> Result<bool, Refusal> {
    let first = accept.split(',').next().unwrap_or_default();
    let kind = first.split(';').find_map(|parameter| parameter.trim().strip_prefix("as="));
    match (kind, is_list) {
        (None, _) => Ok(false),
        (Some("PartialObjectMetadata"), false) | (Some("PartialObjectMetadataList"), true) => Ok(true),
        (Some(kind), _) => Err(Refusal::new(406, format!("you requested {kind}, which the answer is not"))),
    }
}

/// Remembers a request, and refuses it if a fault says so.
fn note(shared: &Shared, verb: &'static str, place: &Place, path: &str, query: &str) -> Result<(), Refusal> {
    let mut state = shared.lock();
    let plural = &place.resource.plural;
    if state.requests.len() < REQUESTS_MAX {
        let resource = match &place.subresource {
            Some(subresource) => format!("{plural}/{subresource}"),
            None => plural.clone(),
        };
        let path = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
        state.requests.push(Request { verb, group: place.resource.group.clone(), resource, path });
    }
    state.faults.refusal(verb, plural).map_or(Ok(()), Err)
}

fn hostile(bytes: Bytes, is_endless: bool) -> Response {
    let body = match is_endless {
        true => Body::from_stream(futures::stream::repeat(Ok::<_, Infallible>(bytes))),
        false => Body::from(bytes),
    };
    ([(CONTENT_TYPE, "application/json")], body).into_response()
}
