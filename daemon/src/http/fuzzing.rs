//! Entry points for fuzz targets: parsing of queries and headers, and merge patches.

use axum::extract::FromRequestParts as _;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request};
use ipam_api::limits::TEXT_CHARS_MAX;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::http::allocation::{allocate, endpoint};
use crate::http::connection::head;
use crate::http::event::query::EventsQuery;
use crate::http::list;
use crate::http::report::{agent, quarantine};
use crate::http::request::caller::{deadline, header_text, request_id};
use crate::http::request::{AddressQuery, Asked, DeleteQuery, NoQuery, ReadQuery, WriteQuery, propose};
use crate::http::resource::{host_policy, namespace, network, node, pool, reservation, subnet};

/// Merges a patch into an object.
pub fn merge(target: &mut Map<String, Value>, patch: Map<String, Value>) {
    crate::http::request::merge_patch::merge(target, patch);
}

/// Reads a query as the handlers of lists, reads, writes, removals, addresses and events do.
pub fn query(text: &str) {
    let Ok(uri) = format!("/v1/pools?{text}").parse::<axum::http::Uri>() else { return };
    let _ = WriteQuery::of(&uri);
    let _ = asked::<ReadQuery>(&uri);
    let _ = asked::<DeleteQuery>(&uri);
    let _ = asked::<AddressQuery>(&uri);
    let _ = asked::<NoQuery>(&uri);
    for shape in [
        &network::SHAPE,
        &subnet::SHAPE,
        &pool::SHAPE,
        &reservation::SHAPE,
        &node::SHAPE,
        &namespace::SHAPE,
        &host_policy::SHAPE,
        &endpoint::SHAPE,
        &allocate::SHAPE,
        &agent::SHAPE,
        &quarantine::SHAPE,
    ] {
        let _ = list::takes(&uri, shape);
    }
    if let Some(query) = asked::<EventsQuery>(&uri) {
        let _ = query.page();
    }
}

/// Reads the cursor of a list, and writes it again.
#[must_use]
pub fn cursor(text: &str) -> Option<String> {
    list::cursor_again(text)
}

/// Reads a query with its extractor. One poll suffices, since the input is complete.
fn asked<T: DeserializeOwned>(uri: &axum::http::Uri) -> Option<T> {
    let request = Request::get(uri.clone()).body(()).ok()?;
    let (mut parts, ()) = request.into_parts();
    let asked = Asked::<T>::from_request_parts(&mut parts, &());
    futures::FutureExt::now_or_never(asked)?.ok().map(|Asked(query)| query)
}

/// Reads headers as every handler does.
pub fn headers(pairs: &[(&[u8], &[u8])]) {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs.iter().take(16) {
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
            headers.append(name, value);
        }
    }
    let _ = propose::expect(&headers);
    let _ = request_id(&headers);
    let _ = deadline(&headers);
    for name in ["idempotency-key", "change-comment"] {
        let _ = header_text(&headers, name, TEXT_CHARS_MAX);
    }
    let _ = head::check(axum::http::Version::HTTP_11, &axum::http::Uri::from_static("/v1/pools"), &headers);
}
