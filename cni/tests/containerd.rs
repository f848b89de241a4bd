//! The plugin as containerd runs it for pods: their annotations in `runtimeConfig`, and several DELs.

use serde_json::{Value, json};

use crate::support::plugin::{Plugin, network};
use crate::support::server::{Server, ServerBehavior};

const POD_ANNOTATIONS: &str = "io.kubernetes.cri.pod-annotations";

/// Configuration with the annotations of a pod, and more keys.
fn conf(server: &Server, annotations: &Value, more: Value) -> String {
    let mut changes = json!({"ipam": {"match_master_subnet": false}});
    for (key, value) in more.as_object().unwrap() {
        changes[key] = value.clone();
    }
    let mut conf: Value = serde_json::from_str(&network("1.0.0", &server.url, &changes)).unwrap();
    conf["runtimeConfig"] = json!({POD_ANNOTATIONS: annotations});
    conf.to_string()
}

fn run(verb: &str, conf: &str) -> crate::support::plugin::Outcome {
    // containerd fills the arguments from a map.
    let arguments = "K8S_POD_UID=u1;K8S_POD_INFRA_CONTAINER_ID=c1;IgnoreUnknown=1;K8S_POD_NAME=web-0;\
        K8S_POD_NAMESPACE=shop";
    Plugin::new(verb).set("CNI_ARGS", arguments).run(conf)
}

#[test]
fn annotations_that_a_request_needs_are_sent_and_others_stay() {
    let large = "<".repeat(250 << 10);
    let routes = r#"[{"dst":"10.9.0.5/16","gw":"10.1.2.1"}]"#;
    for (annotations, sent) in [
        (Value::Null, Value::Null),
        (json!({"kubernetes.io/config.source": "api"}), Value::Null),
        (
            json!({"example.com/large": large, "ipam.spidernet.io/routes": routes,
                   "k8s.v1.cni.cncf.io/networks": "fabric"}),
            json!({"ipam.spidernet.io/routes": routes, "k8s.v1.cni.cncf.io/networks": "fabric"}),
        ),
    ] {
        let server = Server::start(ServerBehavior::Proper);
        let outcome = run("ADD", &conf(&server, &annotations, json!({})));
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let seen = server.seen();
        assert_eq!(seen[0].body["annotations"], sent);
        assert_eq!(seen[0].body["endpoint"]["name"], "web-0");
        assert_eq!(seen[0].body["interfaces"][0]["link_addresses"], Value::Null);
    }
}

#[test]
fn every_del_of_a_pod_succeeds() {
    let server = Server::start(ServerBehavior::Proper);
    // Malformed annotations are the ADD's to refuse.
    let annotations = json!({"ipam.spidernet.io/ippool": "x"});
    let added = run("ADD", &conf(&server, &annotations, json!({})));
    assert_eq!(server.model().addresses().len(), 2);
    let previous = json!({"prevResult": added.result()});
    run("DEL", &conf(&server, &annotations, previous)).succeeds_in_silence();
    assert!(server.model().addresses().is_empty());
    for annotations in [annotations, Value::Null, json!(7)] {
        let conf = conf(&server, &annotations, json!({}));
        Plugin::new("DEL").unset("CNI_NETNS").run(&conf).succeeds_in_silence();
    }
}

#[test]
fn the_addresses_of_the_master_limit_the_pools() {
    let server = Server::start(ServerBehavior::Proper);
    let ipam = json!({"type": "ipam-cni", "servers": [server.url], "node": "node-1", "ipv4_pools": ["p4"],
        "match_master_subnet": true});
    let outcome = run("ADD", &conf(&server, &Value::Null, json!({"ipam": ipam, "master": "lo"})));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let body = &server.seen()[0].body;
    let link = body["interfaces"][0]["link_addresses"].as_array().unwrap();
    assert!(link.contains(&json!("127.0.0.1")), "{body}");
    let nowhere = run("ADD", &conf(&server, &Value::Null, json!({"ipam": ipam, "master": "nowhere"})));
    assert!(nowhere.fails(11).contains("interface \"nowhere\" of the host has no address"));
    // A DEL needs no interface.
    run("DEL", &conf(&server, &Value::Null, json!({"ipam": ipam, "master": "nowhere"})))
        .succeeds_in_silence();
}
