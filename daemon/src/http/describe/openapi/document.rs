//! The OpenAPI document as a whole, and its operations.

use std::collections::{BTreeMap, BTreeSet};

use ipam_api::brand::PRODUCT;
use serde_json::{Map, Value, json};

use super::components::{components, reference};
use super::parameters::{headers, parameters};
use crate::http::describe::routes::{ALWAYS, Access, Body, Route, routes};

fn operation(route: &Route) -> Value {
    let mut responses: BTreeMap<String, Value> = BTreeMap::new();
    for answer in &route.answers {
        let content = match answer.body {
            Body::Nothing => None,
            Body::Json(name) => Some(json!({"application/json": {"schema": reference(name)}})),
            Body::Media(media) => {
                let media = media.split(';').next().unwrap_or(media);
                let schema = if media == "application/json" { json!({}) } else { json!({"type": "string"}) };
                Some(json!({media: {"schema": schema}}))
            }
        };
        let mut response = json!({"description": "It is done, or shown."});
        if let Some(content) = content {
            response["content"] = content;
        }
        responses.insert(answer.status.to_string(), response);
    }
    let mut refusals: BTreeMap<u16, BTreeSet<&str>> = BTreeMap::new();
    for code in route.problems.iter().chain(ALWAYS) {
        refusals.entry(code.entry().http).or_default().insert(code.entry().code);
    }
    // Refusals of axum, such as an unreadable path parameter, become `malformed-body`.
    refusals.entry(400).or_default().insert("malformed-body");
    for (status, codes) in refusals {
        let codes: Vec<&str> = codes.into_iter().collect();
        let content = json!({"application/problem+json": {"schema": reference("Problem")}});
        responses
            .entry(status.to_string())
            .or_insert_with(|| json!({"description": codes.join(", "), "content": content}));
    }
    let security = match route.access {
        Access::Public => json!([]),
        _ => json!([{"token": []}, {}]),
    };
    let mut operation = json!({
        "operationId": operation_id(route),
        "tags": [tag(route)],
        "summary": route.summary,
        "parameters": parameters(route),
        "responses": responses,
        "security": security,
    });
    if let Some(request) = route.request {
        let media = if route.method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let is_required = request != "RenewRequest";
        operation["requestBody"] =
            json!({"required": is_required, "content": {media: {"schema": reference(request)}}});
    }
    operation
}

/// Group of a route: the plural of its resources, or `server` for routes about one member.
pub(super) fn tag(route: &Route) -> &str {
    let mut segments = route.path.split('/').skip(1);
    match (segments.next(), segments.next()) {
        (Some("v1"), Some(plural)) => plural,
        _ => "server",
    }
}

/// Operation id of a route, such as `get-v1-pools-name`.
pub(super) fn operation_id(route: &Route) -> String {
    let words = route.path.split(['/', '{', '}', '.']).filter(|word| !word.is_empty());
    let words: Vec<&str> = words.collect();
    format!("{}-{}", route.method.to_ascii_lowercase(), words.join("-"))
}

pub(super) fn document() -> Value {
    let mut paths = Map::new();
    let mut tags = BTreeSet::new();
    for route in routes() {
        tags.insert(tag(&route).to_owned());
        let place = paths.entry(route.path.clone()).or_insert_with(|| json!({}));
        place[route.method.to_ascii_lowercase()] = operation(&route);
    }
    let about = "Every refusal is application/problem+json with a stable code. Every answer has the headers \
                 Request-Id and Server-Timing; one about the state has Revision, one about a resource its ETag.";
    json!({
        "openapi": "3.1.0",
        "info": {"title": PRODUCT, "version": "1", "description": about, "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"}},
        "tags": tags.into_iter().map(|tag| json!({"name": tag})).collect::<Vec<_>>(),
        "paths": paths,
        "components": {
            "schemas": components(),
            "parameters": headers(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    })
}
