//! The CNI behaviours of `reference/cni-and-peers.md` §2, by their numbers, against the real program.
//!
//! In this file: 1–23, 25–26, 29–34, 36–38, 44–45, 47–51. They are about the plugin: its input, its requests
//! and its output. The others are about allocation, release and replication, where the plugin only forwards
//! (24, 27–28, 35, 39–43, 46, 52–54); those are tested with the state machine and the daemon. Of 46, 47 and
//! 49 only the plugin's side is here: without an agent, GC frees nothing.

use crate::support::plugin::{Outcome, Plugin, network};
use crate::support::server::{Server, ServerBehavior, unused_url};
use serde_json::{Value, json};

const VERSIONS: [&str; 7] = ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"];

fn proper() -> Server {
    Server::start(ServerBehavior::Proper)
}

fn conf(server: &Server) -> String {
    network("1.1.0", &server.url, &json!({}))
}

fn add(server: &Server, container: &str) -> Outcome {
    Plugin::new("ADD").container(container).run(conf(server))
}

/// Runs ADD with `changes` to the configuration and with `arguments` as `CNI_ARGS`.
fn add_with(server: &Server, container: &str, arguments: &str, changes: &Value) -> Outcome {
    let conf = network("1.1.0", &server.url, changes);
    Plugin::new("ADD").container(container).set("CNI_ARGS", arguments).run(conf)
}

/// The configuration of a CHECK: `outcome` is the result of the ADD that it is about.
fn with_previous(server: &Server, outcome: &Outcome) -> String {
    network("1.1.0", &server.url, &json!({"prevResult": outcome.result()}))
}

#[track_caller]
fn is_golden(file: &str, outcome: &Outcome) {
    let path = format!("{}/tests/golden/{file}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("IPAM_BLESS").is_some() {
        std::fs::write(&path, &outcome.stdout).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(outcome.stdout, golden, "{file} (IPAM_BLESS=1 writes it)");
}

#[test]
fn vectors_1_and_2_version() {
    let with_input = Plugin::bare().set("CNI_COMMAND", "VERSION").run(r#"{"cniVersion":"0.3.1"}"#);
    let without = Plugin::bare().set("CNI_COMMAND", "VERSION").run("");
    assert_eq!(with_input.result(), without.result());
    is_golden("version.json", &without);
}

#[test]
fn vectors_3_to_5_add_in_every_version() {
    for version in VERSIONS {
        let server = proper();
        let outcome = Plugin::new("ADD").run(network(version, &server.url, &json!({})));
        assert_eq!(outcome.code, Some(0), "{version}: {outcome:?}");
        is_golden(&format!("add-{version}.json"), &outcome);
    }
}

#[test]
fn routes_in_every_version() {
    let routes = json!([
        {"dst": "0.0.0.0/0", "gw": "10.1.2.3"},
        {"destination": "2001:db8:9::/48", "gateway": "2001:db8:1::9"},
    ]);
    for version in VERSIONS {
        let server = proper();
        let asked = json!({"args": {"cni": {"routes": routes}}});
        let outcome = Plugin::new("ADD").run(network(version, &server.url, &asked));
        is_golden(&format!("routes-{version}.json"), &outcome);
        let mut asked = json!({"ipam": {"clean_gateway": true}});
        asked["args"] = json!({"cni": {"clean_gateway": false}});
        let outcome = Plugin::new("ADD").container("c2").run(network(version, &server.url, &asked));
        assert!(outcome.stdout.contains("\"0.0.0.0/0\""), "{outcome:?}");
        // No default route, though there is a router.
        let list = json!([{"interface": "eth0", "cleangateway": true}]);
        asked["args"] = json!({"cni": {"interfaces": list, "default_route_interface": "eth0"}});
        let outcome = Plugin::new("ADD").container("c3").run(network(version, &server.url, &asked));
        is_golden(&format!("clean-gateway-{version}.json"), &outcome);
        let request = server.seen().last().unwrap().body.clone();
        assert_eq!(request["default_route_interface"], "eth0");
        assert_eq!(request["interfaces"][0]["clean_gateway"], true);
    }
}

#[test]
fn vector_6_no_version_means_0_1_0() {
    let server = proper();
    let outcome = Plugin::new("ADD").run(network("", &server.url, &json!({"cniVersion": null})));
    is_golden("add-0.1.0.json", &outcome);
}

/// Refusals before any server is asked.
#[test]
fn vectors_7_to_14_36_37_45_refusals() {
    struct Row {
        vector: u8,
        plugin: Plugin,
        input: String,
        code: u64,
        says: &'static [&'static str],
    }
    let server = unused_url();
    let valid = |version: &str| network(version, &server, &json!({}));
    let changed = |changes: Value| network("1.1.0", &server, &changes);
    let row = |vector, plugin: Plugin, input: String, code, says| Row { vector, plugin, input, code, says };
    let plugin = Plugin::new;
    let all: &[&str] =
        &[r#"plugin supports ["0.1.0" "0.2.0" "0.3.0" "0.3.1" "0.4.0" "1.0.0" "1.1.0"]"#, "incompatible"];
    let mut rows = vec![
        row(7, plugin("ADD"), valid("0.5.0"), 1, &["config is \"0.5.0\", plugin supports ["]),
        row(7, plugin("ADD"), valid("9.9.9"), 1, all),
        row(7, plugin("DEL"), valid("1.1"), 1, all),
        row(8, plugin("FOO"), valid("1.1.0"), 4, &["unknown CNI_COMMAND: FOO"]),
        row(8, Plugin::bare().set("CNI_COMMAND", "FOO"), String::new(), 4, &["unknown CNI_COMMAND: FOO"]),
        row(
            9,
            plugin("ADD").unset("CNI_CONTAINERID").set("CNI_IFNAME", ""),
            valid("1.1.0"),
            4,
            &["[CNI_CONTAINERID,CNI_IFNAME] missing"],
        ),
        row(
            9,
            Plugin::bare().set("CNI_COMMAND", "CHECK"),
            String::new(),
            4,
            &["[CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME,CNI_PATH] missing"],
        ),
        row(
            9,
            Plugin::bare().set("CNI_COMMAND", "DEL"),
            String::new(),
            4,
            &["[CNI_CONTAINERID,CNI_IFNAME,CNI_PATH] missing"],
        ),
        row(9, Plugin::bare().set("CNI_COMMAND", "GC"), String::new(), 4, &["[CNI_PATH] missing"]),
        row(12, plugin("ADD"), "{".to_owned(), 6, &["EOF"]),
        row(12, plugin("ADD"), String::new(), 6, &["it is empty"]),
        row(12, plugin("DEL"), "\u{0}\u{1}garbage".to_owned(), 6, &["can't be read"]),
        row(12, plugin("ADD"), "[]".to_owned(), 6, &["must be a JSON object"]),
        row(12, plugin("ADD"), "[".repeat(100_000), 6, &["can't be read"]),
        row(12, plugin("ADD"), r#"{"cniVersion":7}"#.to_owned(), 6, &["cniVersion can't be read"]),
        row(13, plugin("ADD"), changed(json!({"name": null})), 7, &["missing network name"]),
        row(13, plugin("DEL"), changed(json!({"name": "a/b"})), 7, &["invalid characters", "a/b"]),
        row(13, plugin("ADD"), changed(json!({"name": 7})), 7, &["missing network name"]),
        row(14, plugin("ADD"), changed(json!({"ipam": null})), 7, &["the section ipam is missing"]),
        row(14, plugin("ADD"), changed(json!({"ipam": "x"})), 7, &["ipam must be an object, not"]),
        row(14, plugin("ADD"), changed(json!({"ipam": {"servers": null}})), 7, &["ipam.servers is missing"]),
        row(
            14,
            plugin("ADD"),
            changed(json!({"ipam": {"servers": ["http://n1:1"]}})),
            7,
            &["the server \"n1\" is a name"],
        ),
        row(
            14,
            plugin("STATUS"),
            changed(json!({"ipam": {"servers": ["http://n1"]}})),
            7,
            &["by IP address"],
        ),
        // The attachment may be older than this configuration: the runtime repeats its DEL.
        row(14, plugin("DEL"), changed(json!({"ipam": {"servers": ["http://n1"]}})), 11, &["by IP address"]),
        row(14, plugin("ADD"), changed(json!({"ipam": {"servers": 7}})), 7, &["ipam.servers must be a list"]),
        row(
            14,
            plugin("ADD"),
            changed(json!({"ipam": {"servers": ["ftp://10.0.0.1"]}})),
            7,
            &["http://host:port"],
        ),
        row(14, plugin("ADD"), changed(json!({"ipam": {"ipv4_pools": ["A_B"]}})), 7, &["ipam.ipv4_pools"]),
        row(14, plugin("ADD"), changed(json!({"ipam": {"realm": "A"}})), 7, &["ipam.realm"]),
        row(17, plugin("CHECK"), valid("0.3.1"), 1, &["config version does not allow CHECK"]),
        row(
            36,
            plugin("ADD").set("CNI_ARGS", "COLOUR=red"),
            valid("1.1.0"),
            4,
            &["unknown args [\"COLOUR\"]"],
        ),
        row(37, plugin("ADD").set("CNI_ARGS", "IP"), valid("1.1.0"), 4, &["invalid pair"]),
        row(37, plugin("ADD").set("CNI_ARGS", "IP=zzz"), valid("1.1.0"), 4, &["invalid IP address"]),
        row(
            37,
            plugin("ADD"),
            changed(json!({"runtimeConfig": {"ips": ["10.1.2"]}})),
            7,
            &["runtimeConfig.ips: invalid IP address"],
        ),
        row(
            38,
            plugin("ADD").set("CNI_ARGS", "IP=10.1.2.4,10.1.2.5"),
            valid("0.2.0"),
            7,
            &["CNI version 0.2.0 does not support more than 1 address per family"],
        ),
        row(45, plugin("GC"), valid("1.0.0"), 1, &["config version does not allow GC"]),
        row(45, plugin("STATUS"), valid("1.0.0"), 1, &["config version does not allow STATUS"]),
    ];
    for id in ["../x", "é", "-a", "a b", "a/b", "a:b"] {
        let plugin = plugin("ADD").container(id);
        rows.push(row(10, plugin, valid("1.1.0"), 4, &["invalid characters in containerID"]));
    }
    for (name, says) in [
        ("sixteen-chars-xx", &["too long"][..]),
        ("a/b", &["contains / or :"]),
        (".", &["empty, . or .."]),
        ("a b", &["whitespace"]),
        ("a:b", &["contains / or :"]),
    ] {
        rows.push(row(11, plugin("DEL").set("CNI_IFNAME", name), valid("1.1.0"), 4, says));
    }
    for Row { vector, plugin, input, code, says } in rows {
        let outcome = plugin.run(input);
        let texts = outcome.fails(code);
        for word in says {
            assert!(texts.contains(word), "vector {vector}: {word:?} is not in {texts:?}");
        }
    }
}

#[test]
fn vector_14_del_without_a_usable_ipam_section_succeeds_and_says_so() {
    let server = unused_url();
    for ipam in [json!({"ipam": null}), json!({"ipam": []}), json!({"ipam": {"node": "../x"}})] {
        let outcome = Plugin::new("DEL").run(network("1.1.0", &server, &ipam));
        outcome.succeeds_in_silence();
        assert!(outcome.stderr.contains("DEL has nothing to release"), "{outcome:?}");
    }
}

#[test]
fn vectors_15_and_16_check() {
    let server = proper();
    let given = add(&server, "c1");
    Plugin::new("CHECK").run(with_previous(&server, &given)).succeeds_in_silence();
    Plugin::new("CHECK").run(conf(&server)).succeeds_in_silence();

    let texts = Plugin::new("CHECK").container("c2").run(with_previous(&server, &given)).fails(117);
    assert!(texts.contains("check-failed: no address is held by default/node-1/lan/c2/eth0"), "{texts}");
}

#[test]
fn vector_18_check_of_an_address_that_another_owns_now() {
    let server = proper();
    let (first, second) = (add(&server, "c1"), add(&server, "c2"));
    let texts = Plugin::new("CHECK").container("c2").run(with_previous(&server, &first)).fails(117);
    assert!(texts.contains("10.1.2.3 is held by default/node-1/lan/c2/eth0"), "{texts}");

    let mut both = second.result();
    let theirs = first.result()["ips"][0].clone();
    both["ips"].as_array_mut().unwrap().push(theirs);
    let conf = network("1.1.0", &server.url, &json!({"prevResult": both}));
    let texts = Plugin::new("CHECK").container("c2").run(conf).fails(117);
    assert!(texts.contains("10.1.2.2 of prevResult is not held"), "{texts}");

    let conf = network("1.1.0", &server.url, &json!({"prevResult": {"ips": [{"address": 7}]}}));
    Plugin::new("CHECK").container("c2").run(conf).fails(6);
}

#[test]
fn vectors_19_and_20_del_is_always_fine() {
    let server = proper();
    assert_eq!(add(&server, "c1").addresses(), ["10.1.2.2", "2001:db8:1::2"]);
    for _ in 0..2 {
        Plugin::new("DEL").run(conf(&server)).succeeds_in_silence();
        assert!(server.model().addresses().is_empty());
    }
    Plugin::new("DEL").container("never").run(conf(&server)).succeeds_in_silence();
    Plugin::new("DEL").set("CNI_NETNS", "").run(conf(&server)).succeeds_in_silence();
    Plugin::new("DEL").unset("CNI_NETNS").run(conf(&server)).succeeds_in_silence();
    // What an ADD would refuse is no reason to keep an address.
    let odd = network("1.1.0", &server.url, &json!({"ipam": {"ipv4_pools": 7}, "prevResult": 7}));
    Plugin::new("DEL").set("CNI_ARGS", "IP").run(odd).succeeds_in_silence();
}

/// So that the address of a pod that another system had added, and the import has adopted, ends with the pod.
#[test]
fn a_del_names_the_endpoint_and_its_incarnation() {
    let server = proper();
    let asked = |arguments: &str, changes: &Value| {
        let conf = network("1.1.0", &server.url, changes);
        Plugin::new("DEL").set("CNI_ARGS", arguments).run(conf).succeeds_in_silence();
        let body = server.seen().last().unwrap().body.clone();
        (body["endpoint"].clone(), body["uid"].clone())
    };
    let pod = "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0;K8S_POD_UID=";
    let named = format!("{pod}u-1");
    let of_kind =
        |kind: &str, name: &str| json!({"realm": "default", "kind": kind, "namespace": "shop", "name": name});
    assert_eq!(asked(&named, &json!({})), (of_kind("pod", "web-0"), json!("u-1")));
    let controller = json!({"group": "kubevirt.io", "kind": "VirtualMachine", "name": "db"});
    let changes = json!({"args": {"cni": {"controller": controller}}});
    assert_eq!(asked(&named, &changes), (of_kind("vm", "db"), json!("u-1")));
    // Without a uid nothing that was adopted is meant.
    assert_eq!(asked(pod, &json!({})).1, Value::Null);
    assert_eq!(asked("", &json!({})).1, Value::Null);
    assert_eq!(asked(&format!("{pod}{}", "u".repeat(1025)), &json!({})).1, Value::Null);
    // What can't be read is no reason to keep the attachment.
    let nothing = (Value::Null, Value::Null);
    for wrong in [format!("{named};IP=10.1"), format!("{named};K8S"), "K8S_POD_NAME=a/b".to_owned()] {
        assert_eq!(asked(&wrong, &json!({})), nothing, "{wrong}");
    }
    assert_eq!(asked(&named, &json!({"args": {"cni": {"controller": 7}}})), nothing);
}

#[test]
fn vector_21_a_repeated_add_gives_the_same_bytes() {
    let server = proper();
    let (first, again) = (add(&server, "c1"), add(&server, "c1"));
    assert_eq!(first.result(), again.result());
    assert_eq!(first.stdout, again.stdout);
    assert_eq!(server.model().addresses().len(), 2);
}

#[test]
fn vector_22_two_interfaces_of_one_container() {
    let server = proper();
    let other = Plugin::new("ADD").set("CNI_IFNAME", "eth1").run(conf(&server));
    assert_ne!(add(&server, "c1").addresses(), other.addresses());
    Plugin::new("DEL").run(conf(&server)).succeeds_in_silence();
    let left: Vec<String> = server.model().addresses().iter().map(ToString::to_string).collect();
    assert_eq!(left, other.addresses());
}

#[test]
fn vector_23_two_networks_of_one_container() {
    let server = proper();
    let other = Plugin::new("ADD").run(network("1.1.0", &server.url, &json!({"name": "wan"})));
    assert_ne!(add(&server, "c1").addresses(), other.addresses());
}

#[test]
fn vectors_25_26_and_44_exhaustion() {
    let server = proper();
    for container in ["a", "b", "c", "d", "e"] {
        assert_eq!(add(&server, container).code, Some(0));
    }
    let refused = add(&server, "f");
    refused.fails(101);
    is_golden("pool-exhausted.json", &refused);
    assert_eq!(server.model().addresses().len(), 10);
    Plugin::new("DEL").container("b").run(conf(&server)).succeeds_in_silence();
    assert_eq!(add(&server, "f").addresses()[0], "10.1.2.3");

    let server = proper();
    server.model().no_ipv6_left = true;
    add(&server, "c1").fails(101);
    assert!(server.model().addresses().is_empty());
}

#[test]
fn vectors_29_to_34_requested_addresses() {
    let server = proper();
    let none = json!({});
    assert_eq!(add_with(&server, "c1", "IP=10.1.2.5", &none).addresses()[0], "10.1.2.5");
    let texts = add_with(&server, "c2", "IP=10.1.2.5/29", &none).fails(107);
    assert!(texts.contains("10.1.2.5 of pool p4"), "{texts}");
    add_with(&server, "c2", "IP=10.1.2.1", &none).fails(109);
    add_with(&server, "c2", "IP=10.7.7.7", &none).fails(108);
    let both = json!({"args": {"cni": {"ips": ["10.1.2.6", "2001:db8:1::99/64"]}}});
    assert_eq!(add_with(&server, "c3", "", &both).addresses(), ["10.1.2.6", "2001:db8:1::99"]);
    let runtime = json!({"runtimeConfig": {"ips": ["10.1.2.4/29"]}});
    assert_eq!(add_with(&server, "c4", "", &runtime).addresses()[0], "10.1.2.4");

    // All three at once, with one address twice.
    let changes =
        json!({"args": {"cni": {"ips": ["2001:db8:1::77"]}}, "runtimeConfig": {"ips": ["10.1.2.3/29"]}});
    let all = add_with(&server, "c5", "IP=10.1.2.3", &changes);
    assert_eq!(all.addresses(), ["10.1.2.3", "2001:db8:1::77"]);
    let asked = server.seen().last().unwrap().body["interfaces"][0]["addresses"].clone();
    assert_eq!(asked, json!(["10.1.2.3", "2001:db8:1::77"]));
}

#[test]
fn vector_36_orchestrators_say_who_it_is() {
    let server = proper();
    let none = json!({});
    let kubelet = "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0;\
        K8S_POD_INFRA_CONTAINER_ID=c1;K8S_POD_UID=u-1";
    assert_eq!(add_with(&server, "c1", kubelet, &none).code, Some(0));
    let request = server.seen().last().unwrap().body.clone();
    assert_eq!((&request["uid"], &request["node"]), (&json!("u-1"), &json!("node-1")));
    assert_eq!(request["attachment"]["container_id"], "c1");
    assert_eq!(add_with(&server, "c2", "K8S_POD_NAME=p", &none).code, Some(0));
    let nomad =
        "NOMAD_REGION=global;NOMAD_NAMESPACE=prod;NOMAD_JOB_ID=j;NOMAD_GROUP_NAME=g;NOMAD_ALLOC_ID=a1";
    assert_eq!(add_with(&server, "c3", nomad, &none).code, Some(0));
    let endpoints = server.model().endpoints();
    assert_eq!(endpoints, ["pod/shop/web-0", "container/node-1/c2", "container/prod/a1"]);
}

#[test]
fn vectors_47_and_48_gc_frees_nothing_without_an_agent() {
    let server = proper();
    add(&server, "c1");
    let entry = json!([{"containerID": "c2", "ifname": "eth0"}]);
    gc_says(&network("1.1.0", &server.url, &json!({})), "no list of valid attachments");
    let no_agent = "the configuration names no agent";
    for input in [
        json!({"cni.dev/valid-attachments": []}),
        json!({"cni.dev/valid-attachments": entry}),
        json!({"cni.dev/attachments": entry}),
        json!({"cni.dev/attachments": [], "cni.dev/valid-attachments": entry}),
    ] {
        gc_says(&network("1.1.0", &server.url, &input), no_agent);
    }
    let null = conf(&server).replacen('{', "{\"cni.dev/valid-attachments\":null,", 1);
    gc_says(&null, no_agent);
    for bad in
        [json!("x"), json!([7]), json!([{"containerID": "c1"}]), json!([{"containerID": "/", "ifname": "a"}])]
    {
        let conf = network("1.1.0", &server.url, &json!({"cni.dev/valid-attachments": bad}));
        Plugin::new("GC").run(conf).fails(7);
    }
    assert_eq!(server.model().addresses().len(), 2);
    assert_eq!(server.seen().len(), 1, "only the ADD");
}

#[track_caller]
fn gc_says(conf: &str, says: &str) {
    let outcome = Plugin::bare().set("CNI_COMMAND", "GC").set("CNI_PATH", "/x").run(conf);
    outcome.succeeds_in_silence();
    assert!(outcome.stderr.contains(says), "{says:?}: {outcome:?}");
}

/// Repeats STATUS until its outcome is the expected one. A run ends after one second, in which a slow
/// machine may give no answer.
#[track_caller]
fn status_becomes(conf: &str, is_expected: fn(&Outcome) -> bool) {
    let mut outcomes: Vec<Outcome> = Vec::new();
    while !outcomes.last().is_some_and(is_expected) {
        assert!(outcomes.len() < 20, "{outcomes:?}");
        outcomes.push(Plugin::bare().set("CNI_COMMAND", "STATUS").run(conf));
    }
}

#[test]
fn vector_49_status() {
    let status = || Plugin::bare().set("CNI_COMMAND", "STATUS").within_ms(300);
    let is_ready = |outcome: &Outcome| outcome.code == Some(0) && outcome.stdout.is_empty();
    let server = proper();
    status_becomes(&conf(&server), is_ready);
    // One that is ready is enough.
    let some = json!({"ipam": {"servers": [unused_url(), server.url]}});
    status_becomes(&network("1.1.0", "", &some), is_ready);
    status().run(network("1.1.0", &unused_url(), &json!({}))).fails(50);
    let socket = json!({"ipam": {"servers": null, "socket": "/nonexistent/agent.sock"}});
    let texts = status().run(network("1.1.0", "", &socket)).fails(50);
    assert!(texts.contains("agent-unreachable: no answer at /nonexistent/agent.sock"), "{texts}");
    let leaderless = Server::start(ServerBehavior::Refuses(ipam_api::Code::NoLeader));
    status_becomes(&conf(&leaderless), |outcome| outcome.fails(50).contains("no-leader"));
}

#[test]
fn vector_50_an_add_that_a_del_overtook_is_refused() {
    let server = proper();
    let (arrived, go_on) = server.hold_before();
    let late = Plugin::new("ADD").start(conf(&server));
    arrived.recv().unwrap();
    Plugin::new("DEL").run(conf(&server)).succeeds_in_silence();
    go_on.send(()).unwrap();
    let texts = Outcome::from(late.wait_with_output().unwrap()).fails(115);
    assert!(texts.contains("attachment-released"), "{texts}");
    assert!(server.model().addresses().is_empty());
    // One that begins after the DEL is welcome.
    assert_eq!(add(&server, "c1").code, Some(0));
}

#[test]
fn vector_51_killed_after_the_commit() {
    let server = proper();
    let (committed, never) = server.hold_after();
    let mut killed = Plugin::new("ADD").start(conf(&server));
    committed.recv().unwrap();
    killed.kill().unwrap();
    killed.wait().unwrap();
    drop(never);
    let before = server.model().addresses();
    let after: Vec<String> = before.iter().map(ToString::to_string).collect();
    assert_eq!(add(&server, "c1").addresses(), after);
}

#[test]
fn a_configurations_own_dns_wins() {
    let server = proper();
    let dns = json!({"nameservers": ["10.9.9.9"], "domain": "lan", "search": "lan", "options": ["ndots:2"]});
    let result = add_with(&server, "c1", "", &json!({"dns": dns})).result();
    let expected =
        json!({"nameservers": ["10.9.9.9"], "domain": "lan", "search": ["lan"], "options": ["ndots:2"]});
    assert_eq!(result["dns"], expected);
    assert_eq!(add(&server, "c2").result()["dns"]["nameservers"], json!(["10.1.2.1", "2001:db8:1::1"]));
}

#[test]
fn the_hardware_address_is_handed_on() {
    let server = proper();
    let runtime = json!({"runtimeConfig": {"mac": "02:00:00:00:00:01"}});
    for (arguments, changes, mac) in [
        ("", &runtime, "02:00:00:00:00:01"),
        ("MAC=02:00:00:00:00:02", &json!({}), "02:00:00:00:00:02"),
        ("MAC=02:00:00:00:00:02", &runtime, "02:00:00:00:00:01"),
    ] {
        add_with(&server, "c1", arguments, changes);
        assert_eq!(server.seen().last().unwrap().body["interfaces"][0]["mac"], mac);
    }
}
