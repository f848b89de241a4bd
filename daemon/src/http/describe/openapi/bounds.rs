//! Bounds of requests in JSON Schema, as far as the types alone don't define them.
//!
//! The fuzzer of `cargo xtask test --only contract` compares them with the refusals of the server.

use ipam_api::limits::{
    ALLOCATIONS_PER_ENDPOINT_MAX, AUTOMATIC_POOL_ADDRESSES_MAX, BULK_ALLOCATIONS_MAX, BULK_ENDPOINTS_MAX,
    CLIENT_URL_CHARS_MAX, CONTROLLERS_OF_POD_MAX, COOLING_MS_MAX, COOLING_RESERVE_MAX, DNS_DOMAIN_CHARS_MAX,
    DNS_ENTRIES_MAX, DNS_OPTION_CHARS_MAX, HOST_POLICY_CAPTURES_MAX, INTERFACES_MAX, JSON_INTEGER_MAX,
    LABEL_KEY_CHARS_MAX, LABEL_VALUE_CHARS_MAX, LABELS_MAX, LEASE_TTL_MS_MAX, LEASE_TTL_MS_MIN,
    LINK_ADDRESSES_MAX, LINKS_PER_NODE_MAX, MTU_MAX, MTU_MIN_V4, OBJECT_NAME_CHARS_MAX, ORPHANS_MAX,
    PODS_GONE_PER_REPORT_MAX, PODS_PER_REPORT_MAX, POOLS_NAMED_MAX, PREFIX_LEVELS_MAX, PREFIX_TTL_MS_MAX,
    PREFIX_TTL_MS_MIN, PREFIXES_LISTED_MAX, PROBE_MACS_MAX, PROBE_RESULTS_MAX, PROBE_VALID_MS_MAX,
    PROBE_VALID_MS_MIN, QUOTA_APPLICATIONS_MAX, RANGES_MAX, RECLAIM_LINES_MAX, REQUESTED_ADDRESSES_MAX,
    ROUTES_MAX, SELECTOR_NAMES_MAX, TEXT_CHARS_MAX, TOKEN_REALMS_MAX, TOKEN_TTL_MS_MAX,
    TRANSACTION_STEPS_MAX, WORKLOADS_MAX,
};
use ipam_api::schema::ipv6;
use serde_json::{Map, Value, json};

use super::components::reference;

/// One line of text: no control characters.
pub(super) const LINE: &str = r"^[^\x00-\x1f\x7f-\x9f]*$";

/// Schema locations without bounds of their own: only the size of the body bounds them.
pub(super) const UNBOUNDED: [&str; 7] = [
    // Any JSON, up to a number of bytes and of levels.
    "HostPolicy.desired_state",
    "HostPolicyPatch.desired_state",
    // Annotations of a pod, which Kubernetes bounds.
    "AllocateRequest.annotations",
    "AllocateRequest.annotations.additionalProperties",
    // Names of existing pools, whose number is bounded.
    "ConfirmRequest.pools",
    "ReadOnly",
    // The path of the step determines the type of the body.
    "TransactionStep.body",
];

pub(super) fn line() -> Value {
    json!({"maxLength": TEXT_CHARS_MAX, "pattern": LINE})
}

pub(super) fn labels() -> Value {
    let of = |least: usize, most: usize| format!("^[A-Za-z0-9._/:-]{{{least},{most}}}$");
    json!({
        "type": "object",
        "description": "Labels, which selectors compare.",
        "maxProperties": LABELS_MAX,
        "propertyNames": {"type": "string", "pattern": of(1, LABEL_KEY_CHARS_MAX)},
        "additionalProperties": {"type": "string", "pattern": of(0, LABEL_VALUE_CHARS_MAX)},
    })
}

pub(super) fn annotations() -> Value {
    let value = r"^[^\x00-\x08\x0b-\x1f\x7f-\x9f]*$";
    json!({
        "type": "object",
        "description": "Annotations: text for other programs. Lengths are counted in bytes of UTF-8.",
        "maxProperties": LABELS_MAX,
        "propertyNames": {"type": "string", "minLength": 1, "maxLength": LABEL_KEY_CHARS_MAX, "pattern": LINE},
        "additionalProperties": {"type": "string", "maxLength": LABEL_VALUE_CHARS_MAX, "pattern": value},
    })
}

/// Captures of a host policy. The schema does not cover their references.
fn captures() -> Value {
    json!({
        "maxProperties": HOST_POLICY_CAPTURES_MAX,
        "propertyNames": {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9-]{0,62}$"},
        "additionalProperties": {"type": "string", "maxLength": TEXT_CHARS_MAX, "pattern": LINE},
    })
}

fn at_most(items: usize) -> Value {
    json!({"maxItems": items})
}

fn from_one_to(items: usize) -> Value {
    json!({"minItems": 1, "maxItems": items})
}

fn between(least: u64, most: u64) -> Value {
    json!({"minimum": least, "maximum": most})
}

/// Bounds of a field by its name, in any schema.
fn of_field(schema: &str, field: &str) -> Option<Value> {
    let label = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
    Some(match field {
        "description" | "managed_by" | "uid" => line(),
        "hostname" => json!({
            "maxLength": OBJECT_NAME_CHARS_MAX,
            "pattern": format!(r"^{label}(\.{label})*$"),
        }),
        "mac" => json!({"pattern": "^[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}$"}),
        "group" => json!({"pattern": "^[A-Za-z0-9.-]{0,253}$"}),
        "kind" if ["Controller", "ApplicationQuota"].contains(&schema) => {
            json!({"pattern": "^[A-Za-z0-9]{1,63}$"})
        }
        "ranges" | "exclude" => at_most(RANGES_MAX),
        "ipv4_pools" | "ipv6_pools" | "default_ipv4_pools" | "default_ipv6_pools" => at_most(POOLS_NAMED_MAX),
        _ => return None,
    })
}

/// Bounds of fields of one schema, on top of those of [`of_field`].
fn of_schemas() -> Vec<(&'static str, &'static str, Value)> {
    let lease = || between(LEASE_TTL_MS_MIN, LEASE_TTL_MS_MAX);
    let prefix = || between(PREFIX_TTL_MS_MIN, PREFIX_TTL_MS_MAX);
    let addresses = || between(0, JSON_INTEGER_MAX);
    let domain = || json!({"maxLength": DNS_DOMAIN_CHARS_MAX, "pattern": LINE});
    let option = json!({"maxLength": DNS_OPTION_CHARS_MAX, "pattern": LINE});
    let etag = || json!({"pattern": ETAG});
    let host = "[A-Za-z0-9._-]{1,253}";
    let port = "(6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[0-9]{1,4})";
    let ipv6 = format!(r"\[{}\]", ipv6());
    vec![
        ("Subnet", "routes", at_most(ROUTES_MAX)),
        ("Subnet", "vlan", between(0, 4094)),
        ("Subnet", "mtu", between(MTU_MIN_V4.into(), MTU_MAX.into())),
        ("AutomaticRules", "max_size", between(1, AUTOMATIC_POOL_ADDRESSES_MAX.into())),
        ("Dns", "nameservers", at_most(DNS_ENTRIES_MAX)),
        ("Dns", "domain", domain()),
        ("Dns", "search", json!({"maxItems": DNS_ENTRIES_MAX, "items": domain()})),
        ("Dns", "options", json!({"maxItems": DNS_ENTRIES_MAX, "items": option})),
        ("Pool", "cooling_ms", between(0, COOLING_MS_MAX)),
        ("Pool", "routes", at_most(ROUTES_MAX)),
        ("Pool", "realms", at_most(SELECTOR_NAMES_MAX)),
        ("Pool", "node_names", at_most(SELECTOR_NAMES_MAX)),
        ("Pool", "namespaces", at_most(SELECTOR_NAMES_MAX)),
        ("Pool", "network_attachments", at_most(SELECTOR_NAMES_MAX)),
        ("Reservation", "addresses", from_one_to(RANGES_MAX)),
        ("HostPolicy", "interfaces", at_most(INTERFACES_MAX)),
        ("HostPolicy", "capture", captures()),
        ("HostPolicy", "desired_state", json!({"type": "object", "additionalProperties": true})),
        ("Quota", "ipv4", addresses()),
        ("Quota", "ipv6", addresses()),
        ("Quota", "applications", at_most(QUOTA_APPLICATIONS_MAX)),
        ("AddressLimits", "ipv4", addresses()),
        ("AddressLimits", "ipv6", addresses()),
        ("ApplicationQuota", "ipv4", addresses()),
        ("ApplicationQuota", "ipv6", addresses()),
        ("AllocateRequest", "interfaces", from_one_to(INTERFACES_MAX)),
        ("AllocateRequest", "routes", at_most(ROUTES_MAX)),
        ("AllocateRequest", "ttl_ms", lease()),
        ("BulkAllocateRequest", "names", from_one_to(BULK_ENDPOINTS_MAX)),
        ("BulkAllocateRequest", "ttl_ms", lease()),
        ("BulkReleaseRequest", "allocations", at_most(BULK_ALLOCATIONS_MAX)),
        ("InterfaceRequest", "subnets", at_most(POOLS_NAMED_MAX)),
        ("InterfaceRequest", "families", json!({"maxItems": 2, "uniqueItems": true})),
        ("InterfaceRequest", "addresses", at_most(REQUESTED_ADDRESSES_MAX)),
        ("InterfaceRequest", "link_addresses", at_most(LINK_ADDRESSES_MAX)),
        ("Started", "boot_id", json!({"minLength": 1, "maxLength": 64})),
        ("HeartbeatRequest", "boot_id", json!({"minLength": 1, "maxLength": 64})),
        ("HeartbeatRequest", "boot_number", between(1, JSON_INTEGER_MAX)),
        ("HeartbeatRequest", "agent_version", json!({"pattern": "^[0-9A-Za-z.+-]{1,64}$"})),
        ("InventoryDigest", "digest", json!({"pattern": "^[0-9a-f]{16}$"})),
        ("OrphansRequest", "orphans", at_most(ORPHANS_MAX)),
        ("Orphan", "allocations", at_most(ALLOCATIONS_PER_ENDPOINT_MAX)),
        ("WorkloadsRequest", "workloads", at_most(WORKLOADS_MAX)),
        ("PodsReport", "pods", at_most(PODS_PER_REPORT_MAX)),
        (
            "PodsReport",
            "gone",
            json!({
                "maxItems": PODS_GONE_PER_REPORT_MAX,
                "items": {"type": "string", "maxLength": TEXT_CHARS_MAX, "pattern": LINE},
            }),
        ),
        ("PodIdentity", "controllers", at_most(CONTROLLERS_OF_POD_MAX)),
        ("HeartbeatRequest", "links", at_most(LINKS_PER_NODE_MAX)),
        ("ProbesRequest", "results", at_most(PROBE_RESULTS_MAX)),
        ("ProbesRequest", "jobs", between(0, PROBE_RESULTS_MAX as u64)),
        ("ProbesRequest", "after", json!({"pattern": "^[0-9]{1,16}(/[0-9a-f.:]{2,45})?$"})),
        ("ProbeResult", "macs", at_most(PROBE_MACS_MAX)),
        ("ReclaimRequest", "allocations", at_most(RECLAIM_LINES_MAX)),
        ("Probing", "valid_ms", between(PROBE_VALID_MS_MIN, PROBE_VALID_MS_MAX)),
        ("Pool", "cooling_reserve", between(0, COOLING_RESERVE_MAX as u64)),
        ("SplitRequest", "ranges", from_one_to(RANGES_MAX)),
        ("RenewRequest", "ttl_ms", lease()),
        ("DelegateRequest", "length", between(1, 128)),
        ("DelegateRequest", "ttl_ms", prefix()),
        ("DelegateRequest", "through", at_most(PREFIX_LEVELS_MAX - 1)),
        ("SetPrefixesRequest", "prefixes", at_most(PREFIXES_LISTED_MAX)),
        ("PrefixLevel", "length", between(1, 128)),
        ("PrefixLevel", "ttl_ms", prefix()),
        ("TransactionRequest", "if", at_most(TRANSACTION_STEPS_MAX)),
        ("TransactionRequest", "steps", at_most(TRANSACTION_STEPS_MAX)),
        ("TransactionCondition", "path", json!({"pattern": place(false)})),
        ("TransactionCondition", "revision", etag()),
        ("TransactionStep", "path", json!({"pattern": place(true)})),
        ("TransactionStep", "if_match", etag()),
        ("TokenRequest", "realms", at_most(TOKEN_REALMS_MAX)),
        ("TokenRequest", "ttl_ms", between(1, TOKEN_TTL_MS_MAX)),
        ("JoinRequest", "secret_hash", json!({"pattern": "^[0-9A-Fa-f]{64}$"})),
        (
            "JoinMemberRequest",
            "disk_id",
            json!({"minLength": 1, "maxLength": TEXT_CHARS_MAX, "pattern": LINE}),
        ),
        (
            "JoinMemberRequest",
            "peer_address",
            json!({"pattern": format!("^(({host}|{ipv6}):{port}|unix:/[ -~]{{0,105}}[!-.0-~])$")}),
        ),
        (
            "JoinMemberRequest",
            "client_url",
            json!({
                "maxLength": CLIENT_URL_CHARS_MAX,
                "pattern": format!("^https?://({host}|{ipv6})(:{port})?/?$"),
            }),
        ),
    ]
}

/// Pattern of an `ETag` with a revision.
pub(super) const ETAG: &str = "^(\"[0-9]{1,16}\"|[0-9]{1,16})$";

/// Pattern of paths in a transaction: those that a step accepts, or those that a condition accepts.
fn place(is_step: bool) -> String {
    let (name, object, id) =
        ("[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?", "[A-Za-z0-9][A-Za-z0-9_.:-]{0,252}", "[0-9]{1,19}");
    let named = format!(
        "(networks|subnets|pools|reservations|host-policies)/{name}|(nodes|namespaces)/{name}/{object}"
    );
    if !is_step {
        return format!("^/v1/({named})$");
    }
    let endpoint =
        format!("endpoints/(pod|vm|host|machine|claim|container)/{name}/{object}/{object}(/renew)?");
    let all = "networks|subnets|pools|reservations|host-policies|nodes|namespaces|allocations(/bulk|/release)?|prefixes|attachments/release|controllers/(scale|end)";
    format!(
        "^/v1/(({named})(\\?drain=(true|false))?|{all}|allocations/{id}(/renew)?|prefixes/{id}|{endpoint})$"
    )
}

/// Writes all bounds into the schemas.
pub(super) fn apply(all: &mut Map<String, Value>) {
    for (name, schema) in all.iter_mut() {
        let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { continue };
        for (field, schema) in properties {
            match field.as_str() {
                // Spiderpool's annotations are those of a pod, which Kubernetes bounds.
                "annotations" if name == "AllocateRequest" => {}
                "labels" if schema["type"] == "object" => refer(schema, "Labels"),
                "annotations" => refer(schema, "Annotations"),
                _ => of_field(name, field).into_iter().for_each(|bounds| merge(schema, bounds)),
            }
        }
    }
    for (name, field, bounds) in of_schemas() {
        merge(&mut all[name]["properties"][field], bounds);
    }
    // These fields are optional in the type only, so that a refusal can name the missing field.
    all["ReleaseAttachmentRequest"]["required"] = json!(["attachment", "started"]);
    all["ReleaseAttachmentRequest"]["properties"]["started"] = reference("Started");
    all.values_mut().for_each(bound_integers);
}

/// Replaces an inline object by a reference; a description stays.
fn refer(schema: &mut Value, to: &str) {
    if let Some(words) = schema.as_object_mut() {
        words.retain(|word, _| word == "description");
        words.insert("$ref".to_owned(), reference(to)["$ref"].clone());
    }
}

/// Gives integers of a format the bounds of their type.
fn bound_integers(schema: &mut Value) {
    match schema {
        Value::Object(words) => {
            let most = match words.get("format").and_then(Value::as_str) {
                Some("uint64") => Some(u64::MAX),
                Some("uint32") => Some(u32::MAX.into()),
                _ => None,
            };
            if let Some(most) = most {
                words.entry("maximum").or_insert_with(|| most.into());
            }
            words.values_mut().for_each(bound_integers);
        }
        Value::Array(items) => items.iter_mut().for_each(bound_integers),
        _ => {}
    }
}

fn merge(schema: &mut Value, bounds: Value) {
    match (schema, bounds) {
        (Value::Object(words), Value::Object(bounds)) => {
            for (word, bound) in bounds {
                match words.get_mut(&word) {
                    Some(inner @ Value::Object(_)) => merge(inner, bound),
                    _ => drop(words.insert(word, bound)),
                }
            }
        }
        (schema, bounds) => panic!("{schema} can't be bounded by {bounds}"),
    }
}
