//! Requests: authentication, faults, and the verb of each method.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request as Received, State};
use axum::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT, WARNING};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use crate::access::{authenticate, resource};
use crate::discovery::discovery;
use crate::form::Form;
use crate::holds::Stage;
use crate::openapi::{PROTOBUF, VERSION_2, version_3};
use crate::options::Options;
use crate::patch::Format;
use crate::path::{Place, parameter};
use crate::server::{Request, Shared};
use crate::status::Refusal;
use crate::verbs::{Call, execute, verb};
use crate::watch::watch;

/// Maximum length of a request body in bytes, as in the real server.
const BODY_BYTES_MAX: usize = 3 << 20;
/// Maximum number of recorded requests.
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
            .await
            .unwrap_or_else(IntoResponse::into_response),
        Err(_) => Refusal::new(413, "request is too large").into_response(),
    }
}

async fn answer(
    shared: &Arc<Shared>,
    method: &Method,
    path: &str,
    query: &str,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Response, Refusal> {
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let account = authenticate(&shared.lock().tokens, header(AUTHORIZATION))?;
    let hostility = shared.lock().faults.hostility();
    if let Some((bytes, is_endless)) = hostility {
        return Ok(hostile(bytes, is_endless));
    }
    if let Some(document) = discovery(&shared.lock(), path) {
        return Ok(json_response(StatusCode::OK, &document));
    }
    if path == "/openapi/v2" {
        return Ok(([(CONTENT_TYPE, PROTOBUF)], VERSION_2).into_response());
    }
    if let Some(document) = version_3(&shared.lock(), path) {
        return Ok(json_response(StatusCode::OK, &document));
    }
    let place = Place::parse(path, &shared.lock().registry)
        .ok_or_else(|| Refusal::new(404, "the server could not find the requested resource"))?;
    let is_watch = parameter(query, "watch").is_some_and(|value| value != "false" && value != "0");
    let verb = verb(method, &place, is_watch)?;
    let request = note(shared, verb, &place, path, query)?;
    if let Some(account) = account {
        account.check(&shared.lock(), verb, &place, query)?;
    }
    let form = Form::of(header(ACCEPT), query, verb == "list")?;
    if verb == "watch" {
        let stream = watch(shared, &place, query, form)?;
        let mut response = ([(CONTENT_TYPE, "application/json")], stream).into_response();
        warn(&mut response, deprecation(&place).as_slice());
        return Ok(response);
    }
    let format = (verb == "patch").then(|| Format::of(header(CONTENT_TYPE), &place)).transpose()?;
    let body = match verb {
        "create" | "update" | "patch" => decoded(header(CONTENT_TYPE), body)?,
        _ => serde_json::from_slice(body).unwrap_or(Value::Null),
    };
    let mut options = Options::of(query, header(USER_AGENT), format)?;
    shared.pass(Stage::Before, &request).await;
    let call = Call { verb, place: &place, query, body, format };
    let (now, (code, answer)) = {
        let mut state = shared.lock();
        (state.clock.now(), execute(&mut state, call, &mut options)?)
    };
    shared.changed.send_replace(());
    shared.pass(Stage::After, &request).await;
    let mut response = json_response(code, &form.shown(&place, answer, now));
    options.warnings.extend(deprecation(&place));
    warn(&mut response, &options.warnings);
    Ok(response)
}

fn deprecation(place: &Place) -> Option<String> {
    place.custom.as_ref()?.deprecation.clone()
}

/// Adds warnings to an answer.
fn warn(response: &mut Response, warnings: &[String]) {
    for warning in warnings {
        let value = HeaderValue::from_str(&format!("299 - {warning:?}"));
        response.headers_mut().extend(value.ok().map(|value| (WARNING, value)));
    }
}

fn json_response(code: StatusCode, document: &Value) -> Response {
    (code, [(CONTENT_TYPE, "application/json")], document.to_string()).into_response()
}

/// Document of a body.
fn decoded(media_type: &str, body: &Bytes) -> Result<Value, Refusal> {
    let refused = |why: String| Refusal::new(400, why);
    if media_type.contains("yaml") {
        let text = std::str::from_utf8(body).map_err(|error| refused(error.to_string()))?;
        return serde_saphyr::from_str(text).map_err(|error| refused(error.to_string()));
    }
    if media_type.contains("protobuf") {
        return Err(Refusal::new(415, "the body of the request was in an unknown format"));
    }
    serde_json::from_slice(body).map_err(|error| refused(error.to_string()))
}

/// Records a request, and refuses it if a fault requires that.
fn note(
    shared: &Shared,
    verb: &'static str,
    place: &Place,
    path: &str,
    query: &str,
) -> Result<Request, Refusal> {
    let mut state = shared.lock();
    let plural = &place.resource.plural;
    let path = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
    let request = Request { verb, group: place.resource.group.clone(), resource: resource(place), path };
    if state.requests.len() < REQUESTS_MAX {
        state.requests.push(request.clone());
    }
    state.faults.refusal(verb, plural).map_or(Ok(request), Err)
}

fn hostile(bytes: Bytes, is_endless: bool) -> Response {
    let body = match is_endless {
        true => Body::from_stream(futures::stream::repeat(Ok::<_, Infallible>(bytes))),
        false => Body::from(bytes),
    };
    ([(CONTENT_TYPE, "application/json")], body).into_response()
}
