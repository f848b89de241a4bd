//! Parameters of operations: in paths, queries and headers.

use std::collections::BTreeSet;

use ipam_api::brand::{
    HEADER_BUDGET_MS, HEADER_CHANGE_COMMENT, HEADER_IDEMPOTENCY_KEY, HEADER_REQUEST_ID, HEADER_TRACE_PARENT,
};
use ipam_api::limits::{IDEMPOTENCY_KEY_BYTES_MAX, OBJECT_NAME_CHARS_MAX, PAGE_ITEMS_MAX, TEXT_CHARS_MAX};
use ipam_api::schema::{cidr, ipv4, ipv6};
use ipam_machine::event;
use serde_json::{Map, Value, json};

use super::bounds::{ETAG, LINE};
use super::components::reference;
use crate::http::describe::routes::{Access, Condition, Route};
use crate::http::list::Shape;

/// The lists, with the schemas of their items.
pub(super) const LISTS: [(&Shape, &str); 14] = [
    (&crate::http::resource::network::SHAPE, "NetworkView"),
    (&crate::http::resource::subnet::SHAPE, "SubnetView"),
    (&crate::http::resource::pool::SHAPE, "PoolView"),
    (&crate::http::resource::reservation::SHAPE, "ReservationView"),
    (&crate::http::resource::node::SHAPE, "NodeView"),
    (&crate::http::resource::namespace::SHAPE, "NamespaceView"),
    (&crate::http::resource::host_policy::SHAPE, "HostPolicyView"),
    (&crate::http::allocation::endpoint::SHAPE, "EndpointView"),
    (&crate::http::allocation::allocate::SHAPE, "Allocation"),
    (&crate::http::allocation::prefix_list::SHAPE, "Prefix"),
    (&crate::http::cluster::token::SHAPE, "Token"),
    (&crate::http::report::agent::SHAPE, "AgentReport"),
    (&crate::http::report::quarantine::SHAPE, "Quarantine"),
    (&crate::http::report::pod::SHAPE, "ReportedPod"),
];

/// Headers that operations take, by the names of their descriptions.
pub(super) fn headers() -> Map<String, Value> {
    // Text of a header is read without the white space around it.
    let text = |most: usize| json!({"type": "string", "maxLength": most, "pattern": "^[!-~]([ -~]*[!-~])?$"});
    let etag = json!({"type": "string", "pattern": ETAG});
    let budget = json!({"type": "integer", "minimum": 0, "maximum": u64::MAX});
    let request = json!({"type": "string", "pattern": "^[A-Za-z0-9._:-]{1,64}$"});
    let trace = json!({"type": "string", "pattern": "^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$"});
    let all = [
        (
            "IdempotencyKey",
            HEADER_IDEMPOTENCY_KEY,
            text(IDEMPOTENCY_KEY_BYTES_MAX),
            "The same request again under the same key gets the same answer.",
        ),
        (
            "ChangeComment",
            HEADER_CHANGE_COMMENT,
            text(TEXT_CHARS_MAX),
            "Reason of the change, kept with its history. Text beyond ASCII is sent in UTF-8.",
        ),
        ("IfMatch", "if-match", etag, "The ETag at which the resource must be."),
        (
            "IfNoneMatch",
            "if-none-match",
            json!({"type": "string", "enum": ["*"]}),
            "The resource must not exist.",
        ),
        (
            "RequestId",
            HEADER_REQUEST_ID,
            request,
            "Name of the request in logs and events. A name of another form is replaced.",
        ),
        (
            "BudgetMs",
            HEADER_BUDGET_MS,
            budget,
            "Milliseconds that the caller waits for the response. The server counts at most 120000.",
        ),
        (
            "TraceParent",
            HEADER_TRACE_PARENT,
            trace,
            "Trace that the request belongs to (W3C Trace Context). A malformed one is ignored.",
        ),
    ];
    let header = |(key, name, schema, about): (&str, &str, Value, &str)| {
        (key.to_owned(), json!({"name": name, "in": "header", "schema": schema, "description": about}))
    };
    all.into_iter().map(header).collect()
}

pub(super) fn parameters(route: &Route) -> Vec<Value> {
    let mut all: Vec<Value> = path_parameters(&route.path)
        .map(|name| json!({"name": name, "in": "path", "required": true, "schema": in_path(route, name)}))
        .collect();
    for parameter in &route.query {
        let (schema, about) = (in_query(route, parameter.kind), &parameter.about);
        all.push(json!({"name": parameter.name, "in": "query", "schema": schema, "description": about}));
    }
    let mut headers = vec!["RequestId", "TraceParent"];
    if !matches!(route.access, Access::Public) {
        headers.push("BudgetMs");
    }
    if route.method != "GET" {
        headers.extend(["IdempotencyKey", "ChangeComment"]);
    }
    headers.extend(route.conditions.iter().map(|condition| match condition {
        Condition::IfMatch => "IfMatch",
        Condition::IfNoneMatch => "IfNoneMatch",
    }));
    all.extend(headers.iter().map(|name| json!({"$ref": format!("#/components/parameters/{name}")})));
    all
}

fn path_parameters(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
}

fn in_path(route: &Route, name: &str) -> Value {
    let is_object =
        ["/v1/nodes/", "/v1/namespaces/", "/v1/endpoints/"].iter().any(|of| route.path.starts_with(of));
    reference(match name {
        "ip" => "IpAddress",
        "format" => "ConfigurationFormat",
        "kind" => "EndpointKind",
        "interface" => "InterfaceName",
        "node" | "config" | "container" | "namespace" => "ObjectName",
        "name" if is_object => "ObjectName",
        "name" | "realm" => "Name",
        "id" => return in_query(route, "number"),
        other => panic!("{} has no schema for {other}", route.path),
    })
}

/// The schema of a kind of query parameters.
fn in_query(route: &Route, kind: &str) -> Value {
    let text = |pattern: String| json!({"type": "string", "maxLength": TEXT_CHARS_MAX, "pattern": pattern});
    let listed = |what: BTreeSet<String>| what.into_iter().collect::<Vec<_>>().join("|").replace('.', r"\.");
    let shape = || LISTS.iter().find(|(shape, _)| shape.path == route.path).map(|(shape, _)| *shape);
    match kind {
        "boolean" => json!({"type": "boolean"}),
        "number" => json!({"type": "integer", "minimum": 0, "maximum": u64::MAX}),
        "limit" => json!({"type": "integer", "minimum": 1, "maximum": PAGE_ITEMS_MAX}),
        "consistency" => reference("Consistency"),
        "state" => reference("AddressState"),
        "name" => reference("Name"),
        "address" => reference("IpAddress"),
        "cidr" => reference("Cidr"),
        "selector" => reference("Selector"),
        "time" => reference("Timestamp"),
        "text" => json!({"type": "string", "maxLength": TEXT_CHARS_MAX}),
        "line" => json!({"type": "string", "minLength": 1, "maxLength": TEXT_CHARS_MAX, "pattern": LINE}),
        "principal" => json!({"type": "string", "maxLength": OBJECT_NAME_CHARS_MAX}),
        "cursor" => json!({"type": "string", "pattern": "^[A-Za-z0-9_-]{1,50}$"}),
        "event" => json!({"type": "string", "pattern": r"^[0-9]{1,16}(\.[0-9]{1,9})?$"}),
        "address or CIDR" => text(format!("^({}|{}|{})$", ipv4(), ipv6(), cidr())),
        "endpoint" => {
            let (name, object) = ("[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?", "[A-Za-z0-9][A-Za-z0-9_.:-]{0,252}");
            text(format!("^(pod|vm|host|machine|claim|container)/(({name}/)?{object}/)?{object}$"))
        }
        "kinds of events" => {
            let kinds = event::NAMES.iter().filter_map(|(name, _)| name.split('.').next()).map(str::to_owned);
            let kind = listed(kinds.collect());
            text(format!("^({kind})(,({kind}))*$"))
        }
        "fields to sort by" => {
            let fields = shape().into_iter().flat_map(Shape::fields);
            let field =
                listed(fields.flat_map(|field| [field.name, field.path]).map(str::to_owned).collect());
            text(format!("^-?({field})(,-?({field}))*$"))
        }
        "fields" => {
            let mut paths: BTreeSet<String> =
                shape().into_iter().flat_map(Shape::shown).map(str::to_owned).collect();
            let mut field = listed(std::mem::take(&mut paths));
            if shape().is_some_and(|shape| shape.named) {
                field.push_str(r"|(labels|annotations)\.[^,]+");
            }
            text(format!("^({field})(,({field}))*$"))
        }
        other => panic!("{} has a parameter of the unknown kind {other}", route.path),
    }
}
