//! Requests: authentication, faults, and the verb of each method.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request as Received, State};
use axum::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::list::{list, partial};
use crate::patch::{Format, patched};
use crate::path::{Place, parameter};
use crate::server::{Request, Shared};
use crate::status::Refusal;
use crate::watch::watch;
use crate::write::{create, delete, find, update};

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
    if let Some(document) = discovery(shared, path) {
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
    let answer = {
        let mut state = shared.lock();
        match verb {
            "list" => {
                let stale = state.faults.stale.as_ref().map(|(objects, version)| (objects, *version));
                let shown = stale.unwrap_or((&state.store.objects, state.store.version));
                list(&state.store, shown, &place, query)?
            }
            "get" => find(&state.store, &place)?.1,
            "create" => create(&mut state.store, &place, object)?,
            "update" => update(&mut state.store, &place, object)?,
            "patch" => {
                let present = find(&state.store, &place)?.1;
                let next = patched(format.unwrap_or(Format::Merge), &present, object)?;
                update(&mut state.store, &place, next)?
            }
            _ => {
                let grace = parameter(query, "gracePeriodSeconds").and_then(|seconds| seconds.parse().ok());
                delete(&mut state.store, &place, &object, grace.unwrap_or_default())?
            }
        }
    };
    shared.changed.send_replace(());
    let answer = if is_partial { partial(&answer) } else { answer };
    let code = if verb == "create" { StatusCode::CREATED } else { StatusCode::OK };
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
        ("GET", true) => Ok("get"),
        ("POST", false) => Ok("create"),
        ("PUT", true) => Ok("update"),
        ("PATCH", true) => Ok("patch"),
        ("DELETE", true) => Ok("delete"),
        _ => Err(Refusal::new(405, "the server does not allow this method on the requested resource")),
    }
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

/// Documents by which clients find resources.
fn discovery(shared: &Shared, path: &str) -> Option<Value> {
    let state = shared.lock();
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    let groups = || {
        let mut groups: Vec<(&str, &str)> = Vec::new();
        for one in &state.resources {
            if !one.group.is_empty() && !groups.contains(&(&one.group, &one.version)) {
                groups.push((&one.group, &one.version));
            }
        }
        let group = |(name, version): (&str, &str)| {
            let version = json!({"groupVersion": format!("{name}/{version}"), "version": version});
            json!({"name": name, "versions": [version], "preferredVersion": version})
        };
        groups.into_iter().map(group).collect::<Vec<_>>()
    };
    let resources = |group: &str, version: &str| {
        let mine = state.resources.iter().filter(|one| one.group == group && one.version == version);
        let verbs = ["create", "delete", "get", "list", "patch", "update", "watch"];
        let one = mine.clone().next()?.api_version();
        let list: Vec<Value> = mine
            .map(|one| {
                json!({
                    "name": one.plural, "singularName": one.kind.to_lowercase(), "kind": one.kind,
                    "namespaced": one.is_namespaced, "verbs": verbs,
                })
            })
            .collect();
        Some(json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": one, "resources": list}))
    };
    match segments.as_slice() {
        ["version"] => Some(json!({"major": "1", "minor": "33", "gitVersion": "v1.33.0-test"})),
        ["readyz" | "livez" | "healthz"] => Some(json!("ok")),
        ["api"] => Some(json!({"kind": "APIVersions", "versions": ["v1"]})),
        ["apis"] => Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups()})),
        ["api", version] => resources("", version),
        ["apis", group, version] => resources(group, version),
        _ => None,
    }
}
