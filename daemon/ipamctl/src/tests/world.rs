//! Fake server with one object of each kind, under any name.

use super::*;

fn item(fields: Value, status: Value) -> Value {
    let mut item = json!({"description": "front of house", "labels": {"env": "prod", "team": "web"},
                          "annotations": {}, "managed_by": "argocd/infra-pools", "meta": meta(1204)});
    item.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    item["status"] = status;
    item
}

fn network(name: &str) -> Value {
    item(json!({"name": name}), json!({"subnets": 2, "allocated": 125, "counts": counts()}))
}

fn subnet(name: &str) -> Value {
    item(
        json!({"name": name, "network": "default", "cidr": "10.10.0.0/24", "gateway": "10.10.0.1", "vlan": 110,
               "routes": [{"destination": "10.99.0.0/16", "gateway": "10.10.0.2"}],
               "dns": {"nameservers": ["10.10.0.53"], "domain": "example.com"}}),
        json!({"family": 4, "pools": 2, "allocated": 125, "counts": counts()}),
    )
}

fn counts() -> Value {
    json!({"size": 150, "allocated": 125, "cooling": 9, "quarantined": 1, "reserved": 3, "excluded": 6,
           "free": 6, "saturated": false})
}

fn run(ends: [&str; 2], size: u64, state: &str, pool: Option<&str>) -> Value {
    json!({"first": ends[0], "last": ends[1], "size": size, "state": state, "pool": pool,
           "reserved_while_held": state == "allocated" && size == 1})
}

fn address_map(plural: &str, free: bool) -> Value {
    let pool = Some("web");
    let mut items = vec![run(["10.10.0.61", "10.10.0.61"], 1, "free", pool)];
    if !free {
        items.insert(0, run(["10.10.0.50", "10.10.0.60"], 11, "allocated", pool));
        items.push(run(["10.10.0.62", "10.10.0.62"], 1, "allocated", pool));
    }
    if plural == "subnets" {
        items.insert(0, run(["10.10.0.0", "10.10.0.49"], 50, "unmanaged", None));
    }
    if free {
        items.push(run(["10.10.0.140", "10.10.0.143"], 4, "free", pool));
    }
    json!({"items": items, "revision": 48_211_907, "next": if free { json!("10.10.0.198") } else { json!(null) }})
}

fn pool_of(name: &str) -> Value {
    let six = name.ends_with('6');
    let (cidr, ranges) = match six {
        true => ("2001:db8:1::/64", json!([])),
        false => ("10.10.0.0/24", json!(["10.10.0.50-10.10.0.199"])),
    };
    let counts = if six {
        let many = ipam_api::limits::JSON_INTEGER_MAX;
        json!({"size": many, "allocated": 125, "cooling": 0, "quarantined": 0, "reserved": 0, "excluded": 1,
               "free": many, "saturated": true})
    } else {
        counts()
    };
    item(
        json!({"name": name, "subnet": "lan-10", "network": "default", "ranges": ranges,
               "exclude": if six { json!([]) } else { json!(["10.10.0.100-10.10.0.105"]) },
               "strategy": "next", "cooling_ms": 30_000, "strict_cooling": false, "allow_edges": false,
               "default": false, "disabled": false, "terminating": false}),
        json!({"revision": 48_211_907, "family": if six { 6 } else { 4 }, "cidr": cidr, "counts": counts,
               "reserved_while_held": if six { 0 } else { 2 },
               "conditions": [{"type": "Ready", "status": "True", "reason": "Serving", "message": "",
                               "since": "2026-11-08T00:00:00Z"}]}),
    )
}

fn reservation(name: &str) -> Value {
    item(
        json!({"name": name, "network": "default", "addresses": ["10.10.0.12-10.10.0.19"]}),
        json!({"held": 1}),
    )
}

fn host_policy(name: &str) -> Value {
    item(
        json!({"name": name, "realm": "prod-eu", "node_selector": "zone=a", "max_unavailable": "50%",
               "interfaces": [{"name": "eth1", "ipv4_pools": ["web"], "ipv6_pools": ["web6"]}],
               "capture": {"a": "ippool.web.allocate"},
               "desired_state": {"interfaces": [{"name": "eth1", "ipv4": "{{ capture.a.ip }}"}]}}),
        json!({"nodes": 3, "holding": 2}),
    )
}

fn node(name: &str) -> Value {
    item(
        json!({"realm": "prod-eu", "name": name, "labels": {"zone": "a"}}),
        json!({"boot_id": "3f0c1b5e-9a77-4a4e-8d0e-6f6f2d1c9b10", "agent": agent()}),
    )
}

fn agent() -> Value {
    json!({"boot_id": "3f0c1b5e-9a77-4a4e-8d0e-6f6f2d1c9b10", "boot_number": 3, "ready": false,
           "problem": "journal-unwritable", "since": "2026-07-30T08:30:00Z",
           "agent_version": "0.1.0", "heard_at": "2026-07-30T09:00:00Z", "attachments": 12,
           "reported_attachments": 11, "inventory_matches": false})
}

fn namespace(name: &str) -> Value {
    item(
        json!({"realm": "prod-eu", "name": name, "default_ipv4_pools": ["web-a", "web-*"],
               "default_ipv6_pools": ["web6"], "labels": {"team": "web"},
               "quota": {"ipv4": 500, "per_application": {"ipv4": 50, "ipv6": 50},
                         "applications": [{"group": "apps", "kind": "StatefulSet", "name": "db", "ipv4": 120}]}}),
        json!({"held": {"ipv4": 117, "ipv6": 1204}}),
    )
}

fn explanation() -> Value {
    let counts = |held: u64, free: u64| {
        json!({"size": 150, "allocated": held, "cooling": 150 - held - free, "quarantined": 0, "reserved": 0,
               "excluded": 0, "free": free, "saturated": false})
    };
    json!({
        "outcome": "given", "helps": [], "revision": 48_211_907,
        "interfaces": [{"name": "eth0", "addresses": [
            {"address": "10.10.1.31/24", "gateway": "10.10.1.1", "pool": "web-c", "allocation": 48_211_911,
             "checked": false}]}],
        "choices": [{
            "interface": "eth0", "family": 4, "came_from": "namespace", "more": false,
            "pool": "web-c", "address": "10.10.1.31",
            "skipped": [{"verdict": "no-pool-fits", "reason": "for other nodes", "count": 41, "pools": ["rack-12"]},
                        {"verdict": "no-pool-fits", "reason": "for other namespaces", "count": 1, "pools": ["shop"]}],
            "candidates": [
                {"pool": "web-b", "verdict": "no-pool-fits", "reason": "for nodes with other labels",
                 "counts": counts(20, 130)},
                {"pool": "web", "verdict": "exhausted", "counts": counts(135, 0), "next_free_ms": 9000},
                {"pool": "web-c", "verdict": "gives", "address": "10.10.1.31", "counts": counts(30, 120)},
                {"pool": "web-d", "verdict": "gives", "address": "10.10.2.2", "counts": counts(0, 150)}]}],
    })
}

fn token(name: &str) -> Value {
    json!({"name": name, "role": "operator", "realms": ["prod-eu"], "labels": "team=web", "description": "the pipeline", "purpose": "bearer",
           "meta": meta(9), "status": {"expires_at": "2026-12-20T11:00:00Z", "used": false}})
}

fn endpoint(key: &[&str]) -> Value {
    let [kind, realm, namespace, name] = key else { panic!("{key:?}") };
    let mut address = json!({"address": "10.10.0.77/24", "gateway": "10.10.0.1", "pool": "web",
                             "allocation": 48190233, "checked": true});
    match *name {
        "vlan-7" => address["vlan"] = 110.into(),
        "hostile" => address["dns"] = json!({"search": ["a\n[Match]"]}),
        _ => {}
    }
    json!({"kind": kind, "realm": realm, "namespace": namespace, "name": name, "uid": "6c9f4", "meta": meta(9),
           "status": {"interfaces": [{"name": "eth0", "mac": "0a:58:0a:0a:00:4d", "addresses": [address]}]}})
}

fn held(id: u64) -> Value {
    let mut allocation = allocation("attached");
    allocation["id"] = id.into();
    allocation
}

fn colliding(id: u64) -> Value {
    let mut allocation = held(id);
    allocation["station"] = "0a:58:0a:0a:00:4d".into();
    allocation["colliding"] = "52:54:00:aa:01:03".into();
    allocation
}

fn quarantine(address: &str) -> Value {
    // The second was heard an hour ago, and no agent has probed it since.
    let (heard, confirmed) = match address {
        "10.10.0.78" => ("2026-11-20T10:14:07Z", json!(null)),
        _ => ("2026-11-20T11:13:37Z", json!({"realm": "prod-eu", "name": "worker-9"})),
    };
    json!({"network": "default", "address": address, "pool": "web", "mac": "52:54:00:aa:01:02",
           "reported_by": {"realm": "prod-eu", "name": "worker-3"}, "confirmed_by": confirmed,
           "since": "2026-11-20T10:06:07Z", "heard_at": heard})
}

/// Suspect allocations of a silent node: one is due, one is silent in fewer rounds, one was never heard.
pub(crate) fn gc_report() -> Value {
    let line = |allocation: u64, address: &str, witnesses: u64, silent_rounds: u64| {
        json!({"allocation": allocation, "network": "default", "address": address, "pool": "web",
               "endpoint": {"kind": "pod", "realm": "prod-eu", "namespace": "web",
                            "name": format!("api-{allocation}")},
               "node": {"realm": "prod-eu", "name": "worker-17"}, "heard_at": "2026-11-20T11:02:07Z",
               "witnesses": witnesses, "silent_rounds": silent_rounds, "due": silent_rounds == 3})
    };
    let lines = [
        line(48_170_010, "10.10.0.91", 2, 3),
        line(48_170_011, "10.10.0.92", 1, 2),
        line(48_170_012, "10.10.0.93", 0, 0),
    ];
    json!({"items": lines, "revision": 48_211_907})
}

fn tasks() -> Value {
    let task = |name: &str, purpose: &str, interval_ms: u64| {
        json!({"name": name, "purpose": purpose, "interval_ms": interval_ms, "runs": 86_400, "failures": 2,
               "reclaimed": 412, "started_at": "2026-11-20T11:14:06.4Z",
               "succeeded_at": "2026-11-20T11:14:06.5Z", "duration_us": 1_240})
    };
    let mut scan = task("scan", "Looks for records that the rules should have deleted.", 600_000);
    scan.as_object_mut().unwrap().retain(|field, _| !field.ends_with("_at") && field != "duration_us");
    let silent_nodes = task("silent-nodes", "Frees addresses of nodes that are silent.", 1_000);
    json!({"member": "n1", "leads": true, "tasks": [silent_nodes, scan]})
}

fn attachments() -> Value {
    let one = |name: &str, allocation: u64| {
        json!({"attachment": {"realm": "prod-eu", "node": "worker-17", "config": "lan", "interface": "eth0",
                              "container_id": format!("c0ffee{allocation}")},
               "started_boot_id": "3f0c1b5e", "allocations": [allocation],
               "endpoint": {"kind": "pod", "realm": "prod-eu", "namespace": "web", "name": name}})
    };
    json!({"items": [one("api-77", 48_170_010), one("api-78", 48_170_011)], "revision": 48_211_907})
}

fn cluster() -> Value {
    json!({"id": "7f3c-91aa", "epoch": 1, "level": 3, "answered_by": "n1", "leader": "n1", "term": 17,
           "revision": 48_211_907, "digest": "d1", "applied": 900, "stale_ms": 0, "pools": 31,
           "members": [{"id": 1, "name": "n1", "role": "leader", "client_url": "", "peer_address": "n1:7441"}],
           "addresses": {"size": 23_028, "allocated": 18_402, "cooling": 213, "quarantined": 2, "reserved": 0,
                         "excluded": 1, "free": 4_410, "saturated": false}})
}

fn members() -> Value {
    let member = |id: u64, role: &str, behind: u64, silent_ms: u64| {
        json!({"id": id, "name": format!("n{id}"), "role": role, "behind": behind, "silent_ms": silent_ms,
               "client_url": format!("https://n{id}.ipam.example:7440"), "answers": silent_ms < 1_000,
               "peer_address": format!("n{id}.ipam.example:7441")})
    };
    let items = [
        member(1, "voter", 0, 20),
        member(2, "leader", 0, 0),
        member(3, "voter", 48_000, 1_560_000),
        member(4, "learner", 7, 31),
    ];
    json!({"leader": "n2", "voters": 3, "needed": 2, "can_lose": 0, "items": items})
}

fn member_change(dry: bool) -> Value {
    let change = json!({"changes": true, "done": !dry, "steps": ["leadership goes from n2 to n1"], "danger": "mild",
                        "voters_before": ["n1", "n2", "n3"], "voters_after": ["n1", "n2", "n3"],
                        "can_lose_before": 1, "can_lose_after": 1});
    if dry { json!({"dry": change}) } else { change }
}

fn event(what: &str) -> Value {
    let (kind, _) = what.split_once('.').unwrap();
    let mut event = json!({"revision": 48_211_902, "number": 0, "at": "2026-11-19T22:14:07.000Z", "type": what,
                           "object": "web", "kind": kind,
                           "by": {"principal": "admin", "via": "http", "request_id": "8f2"}});
    if kind == "pool" {
        event["comment"] = "NET-4711".into();
        event["changes"] = json!([{"field": "cooling_ms", "from": "30000", "to": "60000"}]);
    } else {
        event["object"] = "10.10.0.77".into();
        event["by"] = json!({"principal": "node/prod-eu/worker-3", "via": "cni", "request_id": "8f3"});
    }
    if !matches!(what, "pool.changed" | "address.cooled") {
        event["endpoint"] =
            json!({"kind": "pod", "realm": "prod-eu", "namespace": "web", "name": "frontend-7"});
        event["node"] = "worker-3".into();
        event["interface"] = "eth0".into();
        event["reason"] = if what == "address.allocated" { "ADD" } else { "DEL" }.into();
    }
    event
}

fn prefix(id: u64) -> Value {
    json!({"id": id, "cidr": "172.16.0.0/24", "network": "default", "subnet": "trench", "pool": "trench",
           "parent": 48_190_230, "realm": "default", "owner": "node-1", "path": "conduit-a/node-1",
           "keep_edges": true, "ttl_ms": 2_400_000, "ends_in_ms": 2_390_000, "children": 2,
           "created_at": "2026-11-19T22:14:07.000Z", "created_by": "admin"})
}

fn one(plural: &str, name: &str) -> Option<Value> {
    Some(match plural {
        "networks" => network(name),
        "subnets" => subnet(name),
        "pools" => pool_of(name),
        "reservations" => reservation(name),
        "nodes" => node(name),
        "host-policies" => host_policy(name),
        "namespaces" => namespace(name),
        "tokens" => token(name),
        "allocations" if name == "48190234" => colliding(48_190_234),
        "allocations" => held(name.parse().ok()?),
        "prefixes" => prefix(name.parse().ok()?),
        "quarantines" => quarantine(name),
        "addresses" if name == "10.10.0.79" => {
            json!({"address": name, "network": "default", "subnet": "lan-10", "pool": "web",
                   "state": "quarantined", "revision": 48_211_907})
        }
        "addresses" => json!({"address": name, "network": "default", "subnet": "lan-10", "pool": "web",
                              "state": "allocated", "revision": 48_211_907, "allocation": held(48_190_233)}),
        _ => return None,
    })
}

fn several(plural: &str) -> Option<Vec<Value>> {
    let names: &[&str] = match plural {
        "networks" => &["default", "lab"],
        "subnets" => &["lan-10", "lan-11"],
        "pools" => &["web", "web6"],
        "reservations" => &["printers"],
        "nodes" => &["worker-3"],
        "host-policies" => &["static-ip"],
        "namespaces" => &["web"],
        "tokens" => &["ci"],
        "allocations" => return Some(vec![held(48_190_233), colliding(48_190_234)]),
        "prefixes" => &["48190233"],
        "quarantines" => &["10.10.0.79", "10.10.0.78"],
        "agents" => return Some(vec![json!({"realm": "prod-eu", "node": "worker-3", "agent": agent()})]),
        "endpoints" => return Some(vec![endpoint(&["pod", "prod-eu", "web", "frontend-7"])]),
        _ => return None,
    };
    names.iter().map(|name| one(plural, name)).collect()
}

/// Answers like a server that has the requested object.
pub(crate) fn world(method: &str, uri: &str, _: usize) -> Option<(u16, Value)> {
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    if method == "GET" && path == "/v1/cluster/members" {
        return Some((200, members()));
    }
    if method != "GET" && path.starts_with("/v1/cluster/") && !path.contains("/epoch") {
        return Some((200, member_change(query.contains("dry_run=true"))));
    }
    if method == "POST" && path == "/v1/pools/web/drain" {
        let drained = json!({"pool": "web", "to": "web-b", "held": 1, "affected": [held(48_190_233)],
                             "revision": 48_211_970});
        return Some((200, if query.contains("dry_run=true") { json!({"dry": drained}) } else { drained }));
    }
    if (method, path) == ("POST", "/v1/host-policies/static-ip/render") {
        let rendered = json!({"policy": "static-ip", "node": "worker-3",
            "endpoint": {"kind": "host", "realm": "prod-eu", "namespace": "static-ip", "name": "worker-3"},
            "interfaces": [], "capture": {}, "desired_state": {"interfaces": [{"name": "eth1", "mtu": 1400}]},
            "revision": 48_211_970});
        return Some((200, if query.contains("dry_run=true") { json!({"dry": rendered}) } else { rendered }));
    }
    if (method, path) == ("POST", "/v1/host-policies/static-ip/reset") {
        return Some((200, json!({"addresses": ["10.10.0.91", "10.10.0.92"], "revision": 48_211_970})));
    }
    if method == "POST" && path.ends_with("/reclaim") {
        let reclaimed = json!({"addresses": ["10.10.0.91"], "stale": 1, "revision": 48_211_970});
        return Some((
            200,
            if query.contains("dry_run=true") { json!({"dry": reclaimed}) } else { reclaimed },
        ));
    }
    if (method, path) == ("PUT", "/v1/prefixes") {
        let set = json!({"prefixes": [prefix(48_190_233)], "ending": false, "revision": 48_211_970,
                         "released": [{"id": 48_190_240, "owner": "node-2", "cidr": "172.16.1.0/24"}]});
        return Some((200, if query.contains("dry_run=true") { json!({"dry": set}) } else { set }));
    }
    if query.contains("dry_run=true") {
        return Some((200, json!({"dry": true})));
    }
    let parts: Vec<&str> = path.trim_start_matches("/v1").trim_start_matches('/').split('/').collect();
    match (method, parts.as_slice()) {
        ("GET", ["version"]) => Some((200, json!({"product": "ipamd", "version": "0.1.0", "level": 3}))),
        ("GET", ["events"]) => Some((
            200,
            json!({"items": [event("pool.changed"), event("address.allocated")], "revision": 48_211_970}),
        )),
        ("GET", ["addresses", address, "history"]) => Some((
            200,
            json!({"address": address, "network": "default", "revision": 48_211_970,
                   "at": query.contains("at=").then_some("2026-11-19T23:14:07.000Z"),
                   "state": query.contains("at=").then_some("allocated"),
                   "last_holder": {"kind": "pod", "realm": "prod-eu", "namespace": "web", "name": "frontend-7"},
                   "events": [event("address.allocated"), event("address.cooled"), event("address.released")]}),
        )),
        (_, ["cluster", "epoch", ..]) => Some((
            200,
            json!({"epoch": 2, "confirmed": false, "from_revision": 48_211_907, "waiting": ["web", "web6"],
                   "since": "2026-11-20T11:30:00.000Z"}),
        )),
        ("GET", ["cluster"]) => Some((200, cluster())),
        ("GET", ["gc"]) => Some((200, gc_report())),
        ("GET", ["tasks"]) => Some((200, tasks())),
        ("GET", ["nodes", _, _, "attachments"]) => Some((200, attachments())),
        ("GET", [plural]) => Some((200, json!({"items": several(plural)?, "revision": 48_211_907}))),
        ("GET", ["endpoints", key @ ..]) => Some((200, endpoint(key))),
        ("GET" | "PUT" | "PATCH", [plural @ ("nodes" | "namespaces"), _, name]) => {
            Some((200, one(plural, name)?))
        }
        ("DELETE", ["nodes" | "namespaces", _, _]) => Some((200, json!({}))),
        ("GET", ["networks", _, "map"]) => Some((
            200,
            json!({"items": [{"subnet": "lan-10", "cidr": "10.10.0.0/24", "pools": 2, "counts": counts()}],
                   "revision": 48_211_907, "next": "10.10.1.0"}),
        )),
        ("GET", [plural, _, "map"]) => Some((200, address_map(plural, query.contains("state=free")))),
        ("GET", ["pools", _, "holders"]) => Some((
            200,
            json!({"items": [{"realm": "default", "namespace": "web", "allocated": 112},
                             {"realm": "prod-eu", "namespace": "db", "allocated": 9}],
                   "namespaces": 4, "counted": 125, "complete": true, "revision": 48_211_907}),
        )),
        ("GET", [plural, name]) => Some((200, one(plural, name)?)),
        ("POST", ["transactions"]) => Some((200, json!({"results": [], "revision": 48_211_970}))),
        ("POST", ["allocations", "explain"]) => Some((200, explanation())),
        ("POST", ["allocations"]) => Some((
            201,
            json!({"endpoint": {"kind": "host", "name": "db-07"}, "repeated": false, "revision": 48_211_912,
                   "interfaces": [{"name": "eth0", "addresses": [
                       {"address": "10.20.12.31/24", "gateway": "10.20.12.1", "pool": "rack-12",
                        "allocation": 48_211_911, "checked": false},
                       {"address": "2001:db8:20:c::1f/64", "gateway": "2001:db8:20:c::1", "pool": "rack-12-v6",
                        "allocation": 48_211_912, "checked": false}]}]}),
        )),
        ("POST", ["allocations", "bulk"]) => Some((
            201,
            json!({"allocations": [
                       {"name": "build-0", "allocation": 48_211_911, "address": "10.20.12.31/24",
                        "pool": "rack-12"},
                       {"name": "build-1", "allocation": 48_211_902, "address": "10.20.12.32/24",
                        "pool": "rack-12", "repeated": true}],
                   "pools": [{"name": "rack-12", "subnet": "lan-12", "gateway": "10.20.12.1"}],
                   "revision": 48_211_912}),
        )),
        ("POST", ["allocations", "release"]) => {
            Some((200, json!({"addresses": ["10.20.12.31"], "gone": 1, "revision": 48_211_970})))
        }
        ("POST", ["prefixes"]) => Some((
            201,
            json!({"prefix": prefix(48_190_233), "through": [], "repeated": false, "revision": 48_211_912}),
        )),
        ("DELETE", ["prefixes", _]) => {
            Some((200, json!({"cidrs": ["172.16.0.0/24"], "ending": false, "revision": 48_211_970})))
        }
        ("POST", ["allocations" | "endpoints", .., "renew"]) => Some((
            200,
            json!({"leases": [{"allocation": 46_999_000, "address": "10.30.0.5",
                               "lease": {"ttl_ms": 86_400_000, "ends_at": "2026-11-21T11:14:07.000Z"}}],
                   "revision": 48_211_970}),
        )),
        ("POST", ["tokens", ..]) => {
            let mut token = token("ci");
            token["secret"] = "ipamd_s3cret".into();
            Some((201, token))
        }
        ("POST", ["pools", _, "split"]) => Some((201, pool_of("web-b"))),
        ("POST", ["controllers", "scale" | "end"]) => {
            Some((200, json!({"addresses": ["10.10.0.77"], "revision": 48_211_970})))
        }
        ("POST", [plural]) => Some((201, several(plural)?.remove(0))),
        ("PUT" | "PATCH", [plural, name]) => Some((200, one(plural, name)?)),
        ("DELETE", ["allocations" | "endpoints", ..]) => {
            Some((200, json!({"addresses": ["10.10.0.77"], "revision": 48_211_970})))
        }
        ("DELETE", [_, _]) => Some((200, json!({}))),
        _ => None,
    }
}

/// Environment with a fixed time, and a terminal of this width.
pub(crate) fn terminal(columns: usize) -> Environment {
    Environment {
        terminal: true,
        width: Some(columns),
        // 2026-11-20 11:14:07 UTC.
        now: Some(ipam_api::time::Timestamp(1_795_173_247_000)),
        ..Environment::default()
    }
}
