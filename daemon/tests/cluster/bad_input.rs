//! Wrong input, by mistake or on purpose: each request gets a clear problem and changes nothing.

use ipam_api::client::Client;
use ipam_api::problem::{Applied, Retry};
use serde_json::{Value, json};

use crate::support::Cluster;
use crate::support::ask::{allocate, allocate_request, list, put};
use crate::support::raw::ask;

/// A request, and the refusal that it must meet.
struct Row {
    method: &'static str,
    path: String,
    headers: Vec<(&'static str, &'static str)>,
    body: Value,
    status: u16,
    code: &'static str,
    /// A part of the sentence.
    says: &'static str,
}

fn row(
    method: &'static str,
    path: &str,
    body: Value,
    status: u16,
    code: &'static str,
    says: &'static str,
) -> Row {
    Row { method, path: path.to_owned(), headers: Vec::new(), body, status, code, says }
}

fn with(headers: &[(&'static str, &'static str)], row: Row) -> Row {
    Row { headers: headers.to_vec(), ..row }
}

/// A subnet `x` that is wrong.
fn subnet(fields: Value, status: u16, code: &'static str, says: &'static str) -> Row {
    named("subnets", fields, status, code, says)
}

/// A pool `x` of the subnet `lan` that is wrong.
fn pool(mut fields: Value, status: u16, code: &'static str, says: &'static str) -> Row {
    fields.as_object_mut().unwrap().entry("subnet").or_insert(json!("lan"));
    named("pools", fields, status, code, says)
}

fn named(plural: &str, mut fields: Value, status: u16, code: &'static str, says: &'static str) -> Row {
    let name = fields.as_object_mut().unwrap().entry("name").or_insert(json!("x"));
    let path = format!("/v1/{plural}/{}", name.as_str().unwrap_or("x"));
    row("PUT", &path, fields, status, code, says)
}

/// A request for addresses that is wrong in its only interface.
fn interface(fields: Value, status: u16, code: &'static str, says: &'static str) -> Row {
    let mut interface = json!({"name": "eth0"});
    interface.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let body = json!({"endpoint": {"kind": "host", "name": "h1"}, "interfaces": [interface]});
    row("POST", "/v1/allocations", body, status, code, says)
}

fn resources() -> Vec<Row> {
    let ranges: Vec<String> = (0..10_000).map(|at| format!("10.1.0.{}", at % 200)).collect();
    let routes: Vec<Value> =
        (0..65).map(|at| json!({"destination": format!("10.{at}.0.0/16"), "gateway": "10.2.0.1"})).collect();
    let labels: Value =
        (0..65).map(|at| (format!("k{at}"), json!("v"))).collect::<serde_json::Map<_, _>>().into();
    let long = "x".repeat(64);
    let free = ["10.1.0.100"];
    vec![
        subnet(json!({"cidr": "10.2.0.5/24"}), 422, "cidr-has-host-bits", "10.2.0.0/24"),
        subnet(json!({"cidr": "2001:db8:2::1/64"}), 422, "cidr-has-host-bits", "2001:db8:2::/64"),
        subnet(
            json!({"cidr": "10.2.0.0/24", "description": "\u{1b}[31mred"}),
            422,
            "invalid-field",
            "control",
        ),
        subnet(json!({"cidr": "10.2.0.0/24", "description": "a\nb"}), 422, "invalid-field", "one line"),
        subnet(json!({"cidr": "10.2.0.0/24", "labels": {"a b": "c"}}), 422, "invalid-field", "label's key"),
        subnet(
            json!({"cidr": "10.2.0.0/24", "labels": {"a": "\u{1b}"}}),
            422,
            "invalid-field",
            "label's value",
        ),
        subnet(
            json!({"cidr": "10.2.0.0/24", "annotations": {"a": "\u{7}"}}),
            422,
            "invalid-field",
            "control",
        ),
        subnet(json!({"cidr": "::/0"}), 422, "limit-exceeded", "::/0"),
        subnet(json!({"cidr": "0.0.0.0/0"}), 422, "limit-exceeded", "0.0.0.0/0"),
        subnet(json!({"cidr": "10.2.0.0/33"}), 422, "invalid-field", "invalid"),
        subnet(json!({"cidr": "10.2.0.0"}), 422, "invalid-field", "invalid"),
        subnet(json!({"cidr": 7}), 422, "invalid-field", "invalid type"),
        subnet(json!({"cidr": null}), 422, "invalid-field", "invalid type"),
        subnet(json!({}), 422, "invalid-field", "missing field `cidr`"),
        subnet(json!({"cidr": "10.2.0.0/24", "gateway": "10.3.0.1"}), 422, "outside-subnet", "10.3.0.1"),
        subnet(
            json!({"cidr": "10.2.0.0/24", "gateway": "2001:db8::1"}),
            422,
            "family-mismatch",
            "2001:db8::1",
        ),
        subnet(
            json!({"cidr": "10.2.0.0/24", "gateway": "10.2.0.255"}),
            422,
            "gateway-in-range",
            "10.2.0.255",
        ),
        subnet(json!({"cidr": "10.2.0.0/24", "vlan": 4095}), 422, "invalid-field", "VLAN"),
        subnet(json!({"cidr": "10.2.0.0/24", "vlan": -1}), 422, "invalid-field", "-1"),
        subnet(json!({"cidr": "10.2.0.0/24", "mtu": 67}), 422, "invalid-field", "68 to 65535"),
        subnet(json!({"cidr": "10.2.0.0/24", "mtu": 65536}), 422, "invalid-field", "68 to 65535"),
        subnet(json!({"cidr": "2001:db8:7::/64", "mtu": 1279}), 422, "conflicting-fields", "1280"),
        subnet(json!({"cidr": "10.2.0.0/24", "mtu": -1}), 422, "invalid-field", "-1"),
        subnet(json!({"cidr": "10.2.0.0/24", "routes": routes}), 422, "limit-exceeded", "64"),
        subnet(json!({"cidr": "10.2.0.0/24", "labels": labels}), 422, "limit-exceeded", "64"),
        subnet(
            json!({"cidr": "10.2.0.0/24", "description": "x".repeat(1025)}),
            422,
            "limit-exceeded",
            "1024",
        ),
        subnet(json!({"cidr": "10.1.0.128/25"}), 409, "overlap", "lan"),
        subnet(json!({"cidr": "10.0.0.0/8"}), 409, "overlap", "lan"),
        subnet(json!({"cidr": "10.2.0.0/24", "network": "none"}), 404, "not-found", "none"),
        subnet(json!({"name": "lan", "cidr": "10.9.0.0/24"}), 422, "immutable-field", "10.1.0.0/24"),
        subnet(
            json!({"name": "lan", "cidr": "10.1.0.0/24", "network": "lab"}),
            422,
            "immutable-field",
            "network",
        ),
        subnet(json!({"cidr": "10.2.0.0/24", "vlna": 3}), 400, "unknown-field", "did you mean \"vlan\"?"),
        subnet(json!({"cidr": "10.2.0.0/24", "zzzzzzzz": 3}), 400, "unknown-field", "zzzzzzzz"),
        pool(json!({"ranges": free, "gateway": "10.3.0.1"}), 422, "outside-subnet", "10.3.0.1"),
        pool(json!({"ranges": free, "gateway": "2001:db8::1"}), 422, "family-mismatch", "2001:db8::1"),
        pool(json!({"ranges": free, "gateway": "10.1.0.255"}), 422, "gateway-in-range", "10.1.0.255"),
        pool(json!({"ranges": free, "gateway": "10.1.0.50"}), 409, "overlap", "allocatable in pool web"),
        pool(json!({"ranges": free, "routes": routes}), 422, "limit-exceeded", "64"),
        pool(
            json!({"ranges": free, "gatewya": "10.1.0.5"}),
            400,
            "unknown-field",
            "did you mean \"gateway\"?",
        ),
        pool(json!({"ranges": ["10.1.0.20-10.1.0.10"]}), 422, "range-reversed", "10.1.0.20"),
        pool(json!({"ranges": ["10.1.0.5-2001:db8::5"]}), 422, "family-mismatch", "2001:db8::5"),
        pool(json!({"ranges": ["2001:db8::5"]}), 422, "family-mismatch", "2001:db8::5"),
        pool(json!({"ranges": ["10.1.0.9/28"]}), 422, "cidr-has-host-bits", "10.1.0.0/28"),
        pool(json!({"ranges": ["10.9.0.10-10.9.0.20"]}), 422, "outside-subnet", "10.9.0.10"),
        pool(json!({"ranges": ["10.1.0.200-10.1.1.20"]}), 422, "outside-subnet", "10.1.1.20"),
        pool(json!({"ranges": ["10.1.0.0/0"]}), 422, "cidr-has-host-bits", "0.0.0.0/0"),
        pool(json!({"ranges": ["10.1.0.50-10.1.0.60"]}), 409, "overlap", "web"),
        pool(json!({}), 409, "overlap", "web"),
        pool(json!({"ranges": ["10.1.0.256"]}), 422, "invalid-field", "10.1.0.256"),
        pool(json!({"ranges": ["10.1.0.1-"]}), 422, "invalid-field", "not an IP address"),
        pool(json!({"ranges": ["-"]}), 422, "invalid-field", "not an IP address"),
        pool(json!({"ranges": [""]}), 422, "invalid-field", ""),
        pool(json!({"ranges": "10.1.0.100"}), 422, "invalid-field", "invalid type"),
        pool(json!({"ranges": ranges}), 422, "limit-exceeded", "1024"),
        pool(json!({"exclude": ranges}), 422, "limit-exceeded", "1024"),
        pool(json!({"subnet": "none", "ranges": ["10.1.0.100"]}), 404, "not-found", "none"),
        pool(json!({"network": "lab", "ranges": ["10.1.0.100"]}), 422, "conflicting-fields", "lab"),
        pool(json!({"ranges": ["10.1.0.100"], "strategy": "lucky"}), 422, "invalid-field", "lucky"),
        pool(
            json!({"ranges": ["10.1.0.100"], "cooling_ms": 604_800_001_u64}),
            422,
            "limit-exceeded",
            "604800000",
        ),
        pool(json!({"ranges": ["10.1.0.100"], "cooling_ms": 1.5}), 422, "invalid-field", "1.5"),
        pool(json!({"ranges": ["10.1.0.100"], "cooling_ms": -1}), 422, "invalid-field", "-1"),
        pool(json!({"name": "web", "ranges": ["10.1.0.11-10.1.0.99"]}), 409, "in-use", "10.1.0.10"),
        pool(
            json!({"name": "web", "ranges": ["10.1.0.10-10.1.0.99"], "exclude": ["10.1.0.10"]}),
            409,
            "in-use",
            "10.1.0.10",
        ),
        pool(json!({"name": "web", "subnet": "lan6"}), 422, "immutable-field", "lan"),
        named("reservations", json!({"addresses": []}), 422, "invalid-field", "address"),
        named("reservations", json!({"addresses": ["10.1.0.9-10.1.0.3"]}), 422, "range-reversed", "10.1.0.9"),
        named("reservations", json!({"addresses": ranges}), 422, "limit-exceeded", "1024"),
        named("networks", json!({"name": "a/b"}), 404, "not-found", "/v1/networks/a/b"),
        row("PUT", "/v1/networks/a%2Fb", json!({"name": "a/b"}), 422, "invalid-field", "a/b"),
        row("POST", "/v1/networks", json!({"name": "a/b"}), 422, "invalid-field", "a/b"),
        row("POST", "/v1/networks", json!({"name": ".."}), 422, "invalid-field", ".."),
        row("POST", "/v1/networks", json!({"name": ""}), 422, "invalid-field", "not a name"),
        row("POST", "/v1/networks", json!({"name": "UPPER"}), 422, "invalid-field", "UPPER"),
        row("POST", "/v1/networks", json!({"name": "a\u{0}b"}), 422, "invalid-field", "\\0"),
        row("POST", "/v1/networks", json!({"name": long}), 422, "invalid-field", "63"),
        row("POST", "/v1/networks", json!({"name": "lab"}), 409, "already-exists", "lab"),
        row("PUT", "/v1/networks/one", json!({"name": "other"}), 422, "conflicting-fields", "other"),
        row("GET", "/v1/networks/a%2Fb", Value::Null, 404, "not-found", "a/b"),
        row("GET", "/v1/networks/%2E%2E%2Fpools", Value::Null, 404, "not-found", "../pools"),
        row("GET", "/v1/networks/%FF", Value::Null, 400, "malformed-body", ""),
        row("DELETE", "/v1/networks/default", Value::Null, 409, "in-use", "default"),
        row("DELETE", "/v1/subnets/lan", Value::Null, 409, "in-use", "lan"),
        row("DELETE", "/v1/pools/web", Value::Null, 409, "in-use", "1"),
        row("DELETE", "/v1/pools/wbe", Value::Null, 404, "not-found", "wbe"),
        row("GET", "/v1/pools/wbe", Value::Null, 404, "not-found", "did you mean web?"),
    ]
}

fn requests() -> Vec<Row> {
    let many: Vec<Value> =
        (0..17).map(|at| json!({"name": format!("eth{at}"), "ipv4_pools": ["web"]})).collect();
    let endpoint = json!({"kind": "host", "name": "h1"});
    let allocate = |body: Value, status, code, says| row("POST", "/v1/allocations", body, status, code, says);
    let default = json!({"destination": "0.0.0.0/0", "gateway": "10.1.0.1"});
    let routed = |mut body: Value, code, says| {
        body["endpoint"] = endpoint.clone();
        body["interfaces"] = json!([{"name": "eth0", "ipv4_pools": ["web"]}]);
        allocate(body, 422, code, says)
    };
    let key = json!({"node": "n", "config": "lan", "container_id": "c", "interface": "eth0"});
    vec![
        interface(json!({"ipv4_pools": ["none"]}), 404, "not-found", "none"),
        interface(json!({}), 409, "no-pool-selected", ""),
        interface(json!({"ipv4_pools": ["A/B"]}), 422, "invalid-field", "A/B"),
        interface(json!({"ipv4_pools": ["web6"]}), 422, "family-mismatch", "web6"),
        interface(
            json!({"ipv4_pools": ["web"], "addresses": ["10.1.0.10"]}),
            409,
            "address-taken",
            "10.1.0.10",
        ),
        interface(
            json!({"ipv4_pools": ["web"], "addresses": ["10.9.9.9"]}),
            422,
            "address-outside-pools",
            "10.9.9.9",
        ),
        interface(json!({"ipv4_pools": ["web"], "addresses": ["10.1.0"]}), 422, "invalid-field", "invalid"),
        interface(
            json!({"ipv4_pools": ["web"], "mac": "x".repeat(2000)}),
            422,
            "invalid-field",
            "not a hardware address",
        ),
        interface(
            json!({"name": "sixteen-chars-xx", "ipv4_pools": ["web"]}),
            422,
            "invalid-field",
            "sixteen",
        ),
        interface(json!({"ipv4_pool": ["web"]}), 400, "unknown-field", "did you mean \"ipv4_pools\"?"),
        interface(json!({"clean_gateway": "yes"}), 422, "invalid-field", "expected a boolean"),
        routed(
            json!({"routes": [{"destination": "10.7.0.0/16", "gateway": "10.9.0.1"}]}),
            "outside-subnet",
            "10.9.0.1",
        ),
        routed(
            json!({"routes": [{"destination": "10.7.0.0/16", "gateway": "fe80::1"}]}),
            "family-mismatch",
            "fe80::1",
        ),
        routed(
            json!({"routes": [{"destination": "10.7.0.1/16", "gateway": "10.1.0.1"}]}),
            "cidr-has-host-bits",
            "10.7.0.0/16",
        ),
        routed(json!({"routes": [default, default]}), "conflicting-fields", "two routes"),
        routed(json!({"routes": vec![default.clone(); 65]}), "limit-exceeded", "64"),
        routed(json!({"default_route_interface": "net1"}), "conflicting-fields", "not among the interfaces"),
        routed(json!({"default_route_interface": "a/b"}), "invalid-field", "a/b"),
        allocate(json!({"endpoint": endpoint, "interfaces": []}), 422, "invalid-field", "interface"),
        allocate(json!({"endpoint": endpoint, "interfaces": many}), 422, "limit-exceeded", "16"),
        allocate(json!({"endpoint": endpoint}), 422, "invalid-field", "interfaces"),
        allocate(
            json!({"endpoint": {"kind": "ship", "name": "h"}, "interfaces": [{"name": "e"}]}),
            422,
            "invalid-field",
            "ship",
        ),
        allocate(
            json!({"endpoint": {"kind": "host", "name": "../h"}, "interfaces": [{"name": "e"}]}),
            422,
            "invalid-field",
            "../h",
        ),
        row("DELETE", "/v1/allocations/7", Value::Null, 409, "allocation-changed", "7"),
        row("DELETE", "/v1/allocations/x", Value::Null, 404, "not-found", "x"),
        row("GET", "/v1/allocations/-1", Value::Null, 404, "not-found", "-1"),
        row("GET", "/v1/allocations/99999999999999999999", Value::Null, 404, "not-found", ""),
        row("GET", "/v1/endpoints/host/default/default/none", Value::Null, 404, "not-found", "none"),
        row("GET", "/v1/endpoints/ship/default/default/none", Value::Null, 404, "not-found", "ship"),
        row("GET", "/v1/addresses/10.1.0", Value::Null, 422, "invalid-field", "10.1.0"),
        row("GET", "/v1/addresses/10.1.0.1?network=none", Value::Null, 404, "not-found", "none"),
        row("POST", "/v1/attachments/release", json!({"attachment": key}), 422, "invalid-field", "started"),
        row(
            "POST",
            "/v1/attachments/release",
            json!({"attachment": {"node": "n"}}),
            422,
            "invalid-field",
            "missing",
        ),
        row("GET", "/v1/attachments/default/n/lan/c/eth0", Value::Null, 404, "not-found", "c"),
        row("GET", "/v1/pools?limit=0", Value::Null, 400, "invalid-filter", "0"),
        row("GET", "/v1/pools?limit=1001", Value::Null, 400, "invalid-filter", "1001"),
        row("GET", "/v1/pools?limit=x", Value::Null, 400, "invalid-filter", "limit"),
        row("GET", "/v1/pools?colour=red", Value::Null, 400, "invalid-filter", "colour"),
        row("GET", "/v1/pools/web?consistency=wild", Value::Null, 400, "invalid-filter", "wild"),
        row("GET", "/v1/pools?cursor=A%2FB", Value::Null, 400, "invalid-cursor", ""),
        row("GET", "/v1/allocations?cursor=x", Value::Null, 400, "invalid-cursor", ""),
        row("POST", "/v1/networks?dry=1", json!({"name": "x"}), 400, "invalid-filter", "dry"),
        row("DELETE", "/v1/networks/lab?force=true", Value::Null, 400, "invalid-filter", "force"),
        row("PATCH", "/v1/pools/web", json!({"name": "x"}), 422, "immutable-field", "web"),
        row("PATCH", "/v1/pools/wbe", json!({}), 404, "not-found", "did you mean web?"),
        row("PATCH", "/v1/pools/web", json!({"rangs": []}), 400, "unknown-field", "did you mean \"ranges\"?"),
        row("PATCH", "/v1/pools/web", json!([]), 400, "malformed-body", "object"),
        row("PATCH", "/v1/allocations/7", json!({}), 405, "method-not-allowed", "PATCH"),
        row("PUT", "/v1/networks/x?dry_run=maybe", json!({"name": "x"}), 400, "invalid-filter", "dry_run"),
        row("PUT", "/v1/networks/x?dryrun=true", json!({"name": "x"}), 400, "invalid-filter", "dryrun"),
        row("PUT", "/v1/networks/x?manager=", json!({"name": "x"}), 400, "invalid-filter", "manager"),
        row("GET", "/v1/networks/lab?dry_run=true", Value::Null, 400, "invalid-filter", "dry_run"),
        row("GET", "/v1/networks/lab?at_least_revision=x", Value::Null, 400, "invalid-filter", "at_least"),
        row("DELETE", "/v1/pools", Value::Null, 405, "method-not-allowed", "DELETE"),
        row("POST", "/livez", Value::Null, 405, "method-not-allowed", "POST"),
        row("PUT", "/v1/allocations/7", json!({}), 405, "method-not-allowed", "PUT"),
        row("GET", "/v1/nothing", Value::Null, 404, "not-found", "/v1/nothing"),
        row("GET", "/v2/pools", Value::Null, 404, "not-found", "/v2/pools"),
        row("GET", "/", Value::Null, 404, "not-found", "/"),
        row("GET", "/v1/pools/", Value::Null, 404, "not-found", ""),
        row("GET", "//v1/pools", Value::Null, 404, "not-found", ""),
        row("GET", "/../../etc/passwd", Value::Null, 404, "not-found", ""),
        with(
            &[("content-type", "text/plain")],
            row("PUT", "/v1/networks/x", json!({"name": "x"}), 415, "unsupported-media-type", "text/plain"),
        ),
        with(
            &[("content-type", "application/x-www-form-urlencoded")],
            row("POST", "/v1/allocations", json!({}), 415, "unsupported-media-type", "form"),
        ),
        with(&[("if-match", "\"x\"")], named("networks", json!({}), 422, "invalid-field", "If-Match")),
        with(
            &[("if-match", "\"7\"")],
            named("networks", json!({"name": "lab"}), 412, "revision-mismatch", "lab"),
        ),
        with(&[("if-match", "\"7\"")], named("networks", json!({}), 412, "revision-mismatch", "network x")),
        with(
            &[("if-none-match", "\"7\"")],
            named("networks", json!({}), 422, "invalid-field", "If-None-Match"),
        ),
        with(
            &[("if-none-match", "*")],
            named("networks", json!({"name": "lab"}), 409, "already-exists", "lab"),
        ),
        with(&[("budget-ms", "soon")], named("networks", json!({}), 422, "invalid-field", "Budget-Ms")),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_wrong_is_refused_clearly_and_changes_nothing() {
    let cluster = Cluster::up(3).await;
    let client = cluster.ask();
    put(&client, "networks", json!({"name": "lab"})).await;
    put(&client, "subnets", json!({"name": "lan", "cidr": "10.1.0.0/24", "gateway": "10.1.0.1"})).await;
    put(&client, "subnets", json!({"name": "lan6", "cidr": "2001:db8:1::/64"})).await;
    let ranges = ["10.1.0.10-10.1.0.99"];
    put(&client, "pools", json!({"name": "web", "subnet": "lan", "ranges": ranges})).await;
    put(&client, "pools", json!({"name": "web6", "subnet": "lan6"})).await;
    allocate(&client, &allocate_request("holder", &["web"])).await.unwrap();
    let before = cluster.settled().await;
    let resources_before = everything(&client).await;
    let mut wrong = Vec::new();
    for (at, row) in resources().into_iter().chain(requests()).enumerate() {
        let member = &cluster.members[at % 3];
        let what = format!("{} {} {:.200}", row.method, row.path, row.body.to_string());
        let answer = ask(member.client, row.method, &row.path, &row.headers, &row.body).await;
        if !(400..500).contains(&answer.status) {
            wrong.push(format!("{what}\n    {answer:?}"));
            continue;
        }
        let problem = answer.problem();
        let (code, printed) = (problem.code.to_string(), format!("{} {}", problem.detail, problem.help));
        if (answer.status, code.as_str()) != (row.status, row.code) || !printed.contains(row.says) {
            wrong.push(format!(
                "{what}\n    is {} {code}: {printed}\n    not {} {}: {}",
                answer.status, row.status, row.code, row.says
            ));
        }
        assert_eq!(problem.applied, Applied::No, "{what}: {problem:?}");
        assert_ne!(problem.retry, Retry::Same, "{what}: {problem:?}");
        assert!(!problem.detail.is_empty() && !problem.help.is_empty(), "{what}: {problem:?}");
        assert_eq!(problem.kind, format!("/docs/problems#{code}"));
    }
    assert!(wrong.is_empty(), "{} are answered otherwise:\n{}", wrong.len(), wrong.join("\n"));
    // Log time advances with every entry, and a refusal by the machine is one; nothing else has changed.
    let after = cluster.settled().await;
    assert_eq!((after.revision, after.addresses), (before.revision, before.addresses));
    assert_eq!(everything(&client).await, resources_before);
}

/// All that can be listed.
async fn everything(client: &Client) -> Vec<Value> {
    let mut all = Vec::new();
    for plural in ["networks", "subnets", "pools", "reservations", "endpoints", "allocations"] {
        all.extend(list::<Value>(client, &format!("/v1/{plural}")).await);
    }
    all
}
