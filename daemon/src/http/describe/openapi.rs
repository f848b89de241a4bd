//! The OpenAPI document, made from the table of routes and the types: `api/openapi.json` is held to it.

use std::collections::{BTreeMap, BTreeSet};

use ipam_api::brand::{HEADER_CHANGE_COMMENT, HEADER_IDEMPOTENCY_KEY, PRODUCT};
use ipam_api::{Problem, cluster, event, explain, request, resource, token, transaction};
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

use crate::http::describe::routes::{ALWAYS, Access, Body, Route, routes};
use crate::http::list::Shape;

type View<Spec, Status> = resource::Resource<Spec, Status>;
type NetworkView = View<resource::Network, resource::NetworkStatus>;
type SubnetView = View<resource::Subnet, resource::SubnetStatus>;
type PoolView = View<resource::Pool, resource::PoolStatus>;
type ReservationView = View<resource::Reservation, resource::ReservationStatus>;
type EndpointView = View<resource::Endpoint, resource::EndpointStatus>;

/// Schemas of all types of the table, and of the types in them.
fn components() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator: SchemaGenerator = settings.into_generator();
    let mut all = Map::new();
    macro_rules! named {
        ($($name:literal: $type:ty,)*) => {
            $(
                let mut schema = generator.root_schema_for::<$type>().to_value();
                if let Some(object) = schema.as_object_mut() {
                    object.remove("components");
                    object.remove("$defs");
                }
                all.insert($name.to_owned(), schema);
            )*
        };
    }
    named! {
        "Network": resource::Network,
        "NetworkView": NetworkView,
        "Subnet": resource::Subnet,
        "SubnetView": SubnetView,
        "Pool": resource::Pool,
        "PoolView": PoolView,
        "Reservation": resource::Reservation,
        "ReservationView": ReservationView,
        "Node": resource::Node,
        "NodeView": View<resource::Node, resource::NodeStatus>,
        "Namespace": resource::Namespace,
        "NamespaceView": View<resource::Namespace, resource::NamespaceStatus>,
        "EndpointView": EndpointView,
        "Allocation": resource::Allocation,
        "Address": resource::Address,
        "AddressMap": resource::AddressMap,
        "NetworkMap": resource::NetworkMap,
        "Holders": resource::Holders,
        "Prefix": resource::Prefix,
        "DelegateRequest": request::DelegateRequest,
        "Delegated": request::Delegated,
        "PrefixReleased": request::PrefixReleased,
        "AllocateRequest": request::AllocateRequest,
        "Allocated": request::Allocated,
        "Explanation": explain::Explanation,
        "ReleaseAttachmentRequest": request::ReleaseAttachmentRequest,
        "ScaleRequest": request::ScaleRequest,
        "EndRequest": request::EndRequest,
        "Released": request::Released,
        "SplitRequest": request::SplitRequest,
        "DrainRequest": request::DrainRequest,
        "Drained": request::Drained,
        "RenewRequest": request::RenewRequest,
        "Renewed": request::Renewed,
        "Attachment": request::Attachment,
        "TransactionRequest": transaction::TransactionRequest,
        "TransactionAnswer": transaction::TransactionAnswer,
        "EventPage": event::EventPage,
        "AddressHistory": event::AddressHistory,
        "Cluster": cluster::Cluster,
        "Members": cluster::Members,
        "MemberChange": cluster::MemberChange,
        "TransferRequest": cluster::TransferRequest,
        "JoinMemberRequest": cluster::JoinMemberRequest,
        "MemberJoined": cluster::MemberJoined,
        "ReplaceRequest": cluster::ReplaceRequest,
        "Version": cluster::Version,
        "Epoch": cluster::Epoch,
        "ConfirmRequest": cluster::ConfirmRequest,
        "Token": token::Token,
        "TokenRequest": token::TokenRequest,
        "JoinRequest": token::JoinRequest,
        "Problem": Problem,
    }
    for (name, schema) in generator.take_definitions(true) {
        all.entry(name).or_insert(schema);
    }
    for (name, item) in [
        ("NetworkPage", "NetworkView"),
        ("SubnetPage", "SubnetView"),
        ("PoolPage", "PoolView"),
        ("ReservationPage", "ReservationView"),
        ("NodePage", "NodeView"),
        ("NamespacePage", "NamespaceView"),
        ("EndpointPage", "EndpointView"),
        ("AllocationPage", "Allocation"),
        ("PrefixPage", "Prefix"),
        ("TokenPage", "Token"),
    ] {
        all.insert(name.to_owned(), page_of(item));
    }
    let patch =
        "Fields to change: null takes one away, objects are merged, everything else replaces (RFC 7396).";
    all.insert("MergePatch".to_owned(), json!({"type": "object", "description": patch}));
    // A response can be sent back unchanged: `meta` and `status` are ignored.
    for name in ["Network", "Subnet", "Pool", "Reservation", "Node", "Namespace"] {
        if let Some(properties) = all.get_mut(name).and_then(|schema| schema["properties"].as_object_mut()) {
            for island in ["meta", "status"] {
                let about = "Ignored, but for `meta.revision`, which counts as If-Match.";
                properties.insert(island.to_owned(), json!({"type": "object", "description": about}));
            }
        }
    }
    all
}

/// With `fields`, items have only the requested fields.
fn page_of(item: &str) -> Value {
    let item = json!({"$ref": format!("#/components/schemas/{item}")});
    json!({
        "type": "object",
        "description": "One page of a list, from one state.",
        "required": ["items", "revision"],
        "properties": {
            "items": {"type": "array", "items": {"anyOf": [item, {"type": "object", "description": "With `fields`: what was asked for."}]}},
            "revision": {"type": "integer", "minimum": 0, "description": "The state that all pages are from."},
            "next": {"type": "string", "description": "The cursor of the next page; absent on the last."},
            "count": {"type": "integer", "minimum": 0, "description": "How many there are on all pages, if that was asked for."},
        },
    })
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn parameters(route: &Route) -> Vec<Value> {
    let mut all = Vec::new();
    for segment in route.path.split('/') {
        if let Some(name) = segment.strip_prefix('{').and_then(|segment| segment.strip_suffix('}')) {
            all.push(json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}));
        }
    }
    for parameter in &route.query {
        let schema = match parameter.kind {
            "consistency" => json!({"type": "string", "enum": ["linearizable", "stale"]}),
            "integer" => json!({"type": "integer", "minimum": 0}),
            kind => json!({"type": kind}),
        };
        let description = &parameter.about;
        all.push(
            json!({"name": parameter.name, "in": "query", "schema": schema, "description": description}),
        );
    }
    let header = |name: &str, about: &str| json!({"name": name, "in": "header", "schema": {"type": "string"}, "description": about});
    if route.method != "GET" {
        all.push(header(
            HEADER_IDEMPOTENCY_KEY,
            "The same request again under the same key gets the same answer.",
        ));
        all.push(header(HEADER_CHANGE_COMMENT, "Why; kept with the history."));
    }
    if matches!(route.method, "PUT" | "PATCH" | "DELETE") {
        all.push(header("if-match", "The ETag at which it must be."));
    }
    all
}

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
    // Impossible names in paths, and failures without a problem of our own.
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
        "summary": route.summary,
        "parameters": parameters(route),
        "responses": responses,
        "security": security,
    });
    if let Some(request) = route.request {
        let media = if route.method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        operation["requestBody"] =
            json!({"required": true, "content": {media: {"schema": reference(request)}}});
    }
    operation
}

/// `get-v1-pools-name`.
fn operation_id(route: &Route) -> String {
    let words = route.path.split(['/', '{', '}', '.']).filter(|word| !word.is_empty());
    let words: Vec<&str> = words.collect();
    format!("{}-{}", route.method.to_ascii_lowercase(), words.join("-"))
}

fn document() -> Value {
    let mut paths = Map::new();
    for route in routes() {
        let place = paths.entry(route.path.clone()).or_insert_with(|| json!({}));
        place[route.method.to_ascii_lowercase()] = operation(&route);
    }
    let about = "Every refusal is application/problem+json with a stable code. Every answer has the headers \
                 Request-Id and Server-Timing; one about the state has Revision, one about a resource its ETag.";
    json!({
        "openapi": "3.1.0",
        "info": {"title": PRODUCT, "version": "1", "description": about, "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"}},
        "paths": paths,
        "components": {
            "schemas": components(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    })
}

fn committed() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../api/openapi.json")
}

#[test]
fn the_committed_document_is_what_the_code_says() {
    let text = serde_json::to_string_pretty(&document()).unwrap() + "\n";
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(committed(), &text).unwrap();
    }
    let committed = std::fs::read_to_string(committed()).unwrap();
    assert!(committed == text, "api/openapi.json is not what the code says: UPDATE=1 writes it anew");
}

#[test]
fn whatever_is_referred_to_is_there() {
    fn references<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str));
                fields.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }
    let document = document();
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    assert!(found.len() > 30);
    for reference in found {
        assert!(document.pointer(reference.strip_prefix('#').unwrap()).is_some(), "{reference}");
    }
    let ids: Vec<String> = routes().iter().map(operation_id).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
}

/// Each field of a list exists in the type of its items.
#[test]
fn lists_name_fields_that_there_are() {
    let schemas = components();
    let lists: [(&Shape, &str); 10] = [
        (&crate::http::resource::network::SHAPE, "NetworkView"),
        (&crate::http::resource::subnet::SHAPE, "SubnetView"),
        (&crate::http::resource::pool::SHAPE, "PoolView"),
        (&crate::http::resource::reservation::SHAPE, "ReservationView"),
        (&crate::http::resource::node::SHAPE, "NodeView"),
        (&crate::http::resource::namespace::SHAPE, "NamespaceView"),
        (&crate::http::allocation::endpoint::SHAPE, "EndpointView"),
        (&crate::http::allocation::allocate::SHAPE, "Allocation"),
        (&crate::http::allocation::prefix::SHAPE, "Prefix"),
        (&crate::http::cluster::token::SHAPE, "Token"),
    ];
    fn resolved<'a>(schemas: &'a Map<String, Value>, schema: &'a Value) -> Vec<&'a Value> {
        let mut all = vec![schema];
        if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
            all.extend(resolved(schemas, &schemas[name.rsplit('/').next().unwrap()]));
        }
        for word in ["allOf", "anyOf", "oneOf"] {
            let parts = schema.get(word).and_then(Value::as_array);
            parts.into_iter().flatten().for_each(|part| all.extend(resolved(schemas, part)));
        }
        all
    }
    for (shape, name) in lists {
        let paths = shape.shown().chain(shape.fields().map(|field| field.path));
        for path in paths {
            let mut places = resolved(&schemas, &schemas[name]);
            for segment in path.split('.') {
                let next: Vec<&Value> = places
                    .iter()
                    .filter_map(|schema| match segment.parse::<usize>() {
                        Ok(_) => schema.get("items"),
                        Err(_) => schema.get("properties").and_then(|properties| properties.get(segment)),
                    })
                    .flat_map(|schema| resolved(&schemas, schema))
                    .collect();
                assert!(!next.is_empty(), "{name} has no {path}");
                places = next;
            }
        }
    }
}

/// Only the table gives handlers to the router, so each has a description and an access rule.
#[test]
fn every_route_of_the_code_is_in_the_table() {
    fn sources(folder: &std::path::Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else {
                let text = std::fs::read_to_string(&path).unwrap();
                let shipped = text.split("#[cfg(test)]").next().unwrap();
                if shipped.contains(concat!(".route", "(")) {
                    found.push(path.file_name().unwrap().to_string_lossy().into_owned());
                }
            }
        }
    }
    let mut found = Vec::new();
    sources(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/http"), &mut found);
    assert_eq!(found, ["table.rs"]);
    assert!(routes().len() > 50);
}

/// A name in a path may always be one that doesn't exist, or none that could.
#[test]
fn every_request_by_name_documents_not_found() {
    let document = document();
    let paths = document.get("paths").and_then(Value::as_object).unwrap();
    let named: Vec<_> = paths.iter().filter(|(path, _)| path.contains('{')).collect();
    assert!(named.len() > 15);
    for (path, operations) in named {
        for (method, operation) in operations.as_object().unwrap() {
            if let Some(responses) = operation.get("responses") {
                assert!(responses.get("404").is_some(), "{method} {path} says nothing of 404");
            }
        }
    }
}
