//! The schemas of the OpenAPI document.

use ipam_api::schema::IpAddress;
use ipam_api::{
    Problem, cluster, event, explain, host_policy, node_report, pod, probe, reclaim, render, request,
    resource, token, transaction, workload,
};
use ipam_machine::map::Standing;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

use super::bounds;

type View<Spec, Status> = resource::Resource<Spec, Status>;
type NetworkView = View<resource::Network, resource::NetworkStatus>;
type SubnetView = View<resource::Subnet, resource::SubnetStatus>;
type PoolView = View<resource::Pool, resource::PoolStatus>;
type ReservationView = View<resource::Reservation, resource::ReservationStatus>;
type HostPolicyView = View<host_policy::HostPolicy, host_policy::HostPolicyStatus>;
type EndpointView = View<resource::Endpoint, resource::EndpointStatus>;

/// Named resources, which can be created, replaced and changed.
const RESOURCES: [&str; 7] = ["Network", "Subnet", "Pool", "Reservation", "Node", "Namespace", "HostPolicy"];

/// Prefix of a reference to a schema of the document.
const PREFIX: &str = "#/components/schemas/";

pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("{PREFIX}{name}")})
}

/// Schemas of all types that the table names, and of the types in them.
pub(super) fn components() -> Map<String, Value> {
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
        "IpAddress": IpAddress,
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
        "HostPolicy": host_policy::HostPolicy,
        "HostPolicyView": HostPolicyView,
        "RenderHostPolicy": host_policy::RenderHostPolicy,
        "RenderedHostPolicy": host_policy::RenderedHostPolicy,
        "ResetHostPolicy": host_policy::ResetHostPolicy,
        "HostPolicyReset": host_policy::HostPolicyReset,
        "EndpointView": EndpointView,
        "ConfigurationFormat": render::Format,
        "HostConfiguration": render::HostConfiguration,
        "Allocation": resource::Allocation,
        "Address": resource::Address,
        "AddressMap": resource::AddressMap,
        "NetworkMap": resource::NetworkMap,
        "Holders": resource::Holders,
        "Prefix": resource::Prefix,
        "DelegateRequest": request::DelegateRequest,
        "Delegated": request::Delegated,
        "PrefixReleased": request::PrefixReleased,
        "SetPrefixesRequest": request::SetPrefixesRequest,
        "PrefixesSet": request::PrefixesSet,
        "AllocateRequest": request::AllocateRequest,
        "Allocated": request::Allocated,
        "BulkAllocateRequest": request::BulkAllocateRequest,
        "BulkAllocated": request::BulkAllocated,
        "BulkReleaseRequest": request::BulkReleaseRequest,
        "BulkReleased": request::BulkReleased,
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
        "HeartbeatRequest": node_report::HeartbeatRequest,
        "HeartbeatAnswer": node_report::HeartbeatAnswer,
        "OrphansRequest": node_report::OrphansRequest,
        "OrphansReleased": node_report::OrphansReleased,
        "ProbesRequest": probe::ProbesRequest,
        "ProbesAnswer": probe::ProbesAnswer,
        "Quarantine": probe::Quarantine,
        "ReclaimRequest": reclaim::ReclaimRequest,
        "Reclaimed": reclaim::Reclaimed,
        "GcLine": reclaim::GcLine,
        "AgentReport": node_report::AgentReport,
        "Tasks": reclaim::Tasks,
        "PodsReport": pod::PodsReport,
        "PodsReported": pod::PodsReported,
        "ReportedPod": pod::ReportedPod,
        "WorkloadsRequest": workload::WorkloadsRequest,
        "WorkloadsAnswer": workload::WorkloadsAnswer,
        "NodeAgent": node_report::NodeAgent,
        "NodeAttachment": node_report::NodeAttachment,
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
        ("HostPolicyPage", "HostPolicyView"),
        ("EndpointPage", "EndpointView"),
        ("AllocationPage", "Allocation"),
        ("PrefixPage", "Prefix"),
        ("TokenPage", "Token"),
        ("NodeAttachmentPage", "NodeAttachment"),
        ("QuarantinePage", "Quarantine"),
        ("GcPage", "GcLine"),
        ("AgentReportPage", "AgentReport"),
        ("ReportedPodPage", "ReportedPod"),
    ] {
        all.insert(name.to_owned(), page_of(item));
    }
    all.extend(shared());
    bounds::apply(&mut all);
    for name in RESOURCES {
        // A client can send a resource back as it was returned.
        for island in ["meta", "status"] {
            all[name]["properties"][island] = reference("ReadOnly");
        }
        add_patch(&mut all, name);
    }
    for (name, schema) in &mut all {
        // Generators name classes by titles.
        schema["title"] = name.as_str().into();
        enumerate(schema);
        refer_to_addresses(schema);
    }
    all
}

/// Schemas that several others share and that have no Rust type.
fn shared() -> [(String, Value); 6] {
    [
        ("Labels", bounds::labels()),
        ("Annotations", bounds::annotations()),
        (
            "Consistency",
            json!({
                "type": "string",
                "description": "Freshness of a response: as of now, or as the member that answers has it.",
                "enum": ["linearizable", "stale"],
            }),
        ),
        (
            "AddressState",
            json!({
                "type": "string",
                "description": "State of an address.",
                "enum": Standing::ALL.map(Standing::as_str),
            }),
        ),
        (
            "ReadOnly",
            json!({
                "type": "object",
                "description": "A read-only part of a resource. Ignored in requests, except `meta.revision`, which counts as If-Match.",
            }),
        ),
        (
            "SelectedFields",
            json!({"type": "object", "description": "The fields of an item that the parameter `fields` names."}),
        ),
    ]
    .map(|(name, schema)| (name.to_owned(), schema))
}

/// Schema of a page. With the parameter `fields`, items have only the requested fields.
fn page_of(item: &str) -> Value {
    json!({
        "type": "object",
        "description": "One page of a list, from one state.",
        "required": ["items", "revision"],
        "properties": {
            "items": {"type": "array", "items": {"anyOf": [reference(item), reference("SelectedFields")]}},
            "revision": {"type": "integer", "minimum": 0, "description": "The state that all pages are from."},
            "next": {"type": "string", "description": "The cursor of the next page; absent on the last."},
            "count": {"type": "integer", "minimum": 0, "description": "How many there are on all pages, if that was asked for."},
        },
    })
}

/// Adds the merge patch of a schema (RFC 7396) as `<name>Patch`, and the patches of the objects in it.
fn add_patch(all: &mut Map<String, Value>, name: &str) {
    let mut patch = all[name].clone();
    let required = patch.as_object_mut().and_then(|patch| patch.remove("required")).unwrap_or_default();
    for (field, schema) in patch["properties"].as_object_mut().into_iter().flatten() {
        if let Some(schema) = schema.as_object_mut() {
            schema.remove("default");
        }
        let inner = inner_object(all, schema);
        let is_fixed = ["meta", "status"].contains(&field.as_str());
        if let Some(inner) = inner.filter(|_| !is_fixed) {
            *schema = reference(&format!("{inner}Patch"));
            add_patch(all, &inner);
        }
        let is_required = required.as_array().into_iter().flatten().any(|one| one == field);
        if !is_fixed && !is_required {
            *schema = nullable(schema);
        }
    }
    if let Some(values) = patch.get_mut("additionalProperties").filter(|values| values.is_object()) {
        *values = nullable(values);
    }
    patch["description"] =
        "Fields to change: null removes a field, objects are merged, other values replace (RFC 7396).".into();
    all.insert(format!("{name}Patch"), patch);
}

/// The name of the object that a schema refers to, which may be null instead.
fn inner_object(all: &Map<String, Value>, schema: &Value) -> Option<String> {
    let ways = schema.get("anyOf").and_then(Value::as_array);
    let mut refs = ways.into_iter().flatten().chain([schema]).filter_map(|way| way["$ref"].as_str());
    let name = refs.next()?.strip_prefix(PREFIX)?;
    (all[name]["type"] == "object").then(|| name.to_owned())
}

fn nullable(schema: &Value) -> Value {
    match (&schema["type"], schema.get("anyOf")) {
        (Value::Array(_), _) | (_, Some(_)) => schema.clone(),
        _ => json!({"anyOf": [schema, {"type": "null"}]}),
    }
}

/// Replaces alternatives of single words by one enumeration, which generators turn into a type.
fn enumerate(schema: &mut Value) {
    let Some(ways) = schema.get("oneOf").and_then(Value::as_array) else { return };
    let word = |way: &Value| way.get("const").and_then(Value::as_str).map(str::to_owned);
    let Some(words) = ways.iter().map(word).collect::<Option<Vec<String>>>() else { return };
    let mut about = schema["description"].as_str().unwrap_or_default().to_owned();
    for (way, word) in ways.iter().zip(&words) {
        about.push_str(&format!("\n- `{word}`: {}", way["description"].as_str().unwrap_or_default()));
    }
    *schema = json!({"type": "string", "title": schema["title"], "description": about, "enum": words});
}

/// Replaces the format `ip` by the schema of addresses: JSON Schema has only formats of one family.
fn refer_to_addresses(schema: &mut Value) {
    match schema {
        Value::Object(words) if words.get("format").is_some_and(|format| format == "ip") => {
            words.remove("format");
            let is_nullable = words.remove("type").is_some_and(|kind| kind.is_array());
            let address = reference("IpAddress");
            if is_nullable {
                words.insert("anyOf".to_owned(), json!([address, {"type": "null"}]));
            } else if let Value::Object(address) = address {
                words.extend(address);
            }
        }
        Value::Object(words) => words.values_mut().for_each(refer_to_addresses),
        Value::Array(items) => items.iter_mut().for_each(refer_to_addresses),
        _ => {}
    }
}
