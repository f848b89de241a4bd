use serde_json::{Value, json};

use super::*;

/// Result of an ADD of `net1`, or of a request without an attachment.
fn taken(annotations: &Value, more: Value) -> Result<Value, Problem> {
    let mut body = json!({
        "endpoint": {"kind": "pod", "namespace": "shop", "name": "web-0"},
        "interfaces": [{"name": "eth0"}],
    });
    let entries = annotations.as_object().unwrap();
    let full = entries.iter().map(|(word, overrides)| {
        let text = overrides.as_str().map_or_else(|| overrides.to_string(), str::to_owned);
        (if word.contains('/') { word.clone() } else { key(word) }, Value::from(text))
    });
    body["annotations"] = Value::Object(full.collect());
    for (field, overrides) in more.as_object().unwrap() {
        body[field] = overrides.clone();
    }
    let request = taken_in(crate::strict::from_slice(body.to_string().as_bytes()).unwrap())?;
    let mut overrides = serde_json::to_value(request).unwrap();
    overrides.as_object_mut().unwrap().remove("endpoint");
    Ok(overrides)
}

fn refused(annotations: Value, more: Value) -> String {
    let problem = taken(&annotations, more).map_err(|problem| problem.detail);
    problem.expect_err(&annotations.to_string())
}

#[test]
fn each_says_the_same_as_our_own_words() {
    let cases = [
        (json!({}), json!({}), json!({"interfaces": [{"name": "eth0"}]})),
        // Annotations of other systems, present on any pod.
        (
            json!({"kubernetes.io/psp": "x", "k8s.v1.cni.cncf.io/network-status": "[]", "dns": "x"}),
            json!({}),
            json!({"interfaces": [{"name": "eth0"}]}),
        ),
        (
            json!({"ippool": {"ipv4": ["web", "web-*"], "ipv6": ["six"]}}),
            json!({}),
            json!({"interfaces": [{"name": "eth0", "ipv4_pools": ["web", "web-*"], "ipv6_pools": ["six"]}]}),
        ),
        (
            json!({"ippools": [{"interface": "eth0", "ipv4": ["a"], "cleangateway": true},
                               {"interface": "net1", "ipv4": ["b"], "ipv6": ["c"]}]}),
            json!({}),
            json!({"interfaces": [{"name": "eth0", "ipv4_pools": ["a"], "clean_gateway": true},
                                  {"name": "net1", "ipv4_pools": ["b"], "ipv6_pools": ["c"]}]}),
        ),
        // Interfaces without names are counted.
        (
            json!({"ippools": [{"ipv4": ["a"]}, {"ipv4": ["b"]}, {"ipv4": ["c"]}]}),
            json!({}),
            json!({"interfaces": [{"name": "eth0", "ipv4_pools": ["a"]}, {"name": "net1", "ipv4_pools": ["b"]},
                                  {"name": "net2", "ipv4_pools": ["c"]}]}),
        ),
        // The first subnet of a family counts; the default size is one more than the replicas.
        (
            json!({"subnet": {"ipv4": ["lan", "never"], "ipv6": ["six"]}}),
            json!({"replicas": 3}),
            json!({"interfaces": [{"name": "eth0", "subnets": ["lan", "six"]}],
                   "replicas": 3, "automatic_pool": {"size": "+1", "reclaim": true}}),
        ),
        // Names that are converted when subnets are imported.
        (
            json!({"subnets": [{"interface": "eth0", "ipv4": ["Lan_12"]}]}),
            json!({}),
            json!({"interfaces": [{"name": "eth0", "subnets": ["lan-12-9cdc9be2"]}],
                   "automatic_pool": {"size": "+1", "reclaim": true}}),
        ),
        (
            json!({"subnet": {"ipv6": ["Lan_12"]}}),
            json!({}),
            json!({"interfaces": [{"name": "eth0", "subnets": ["lan-12-9cdc9be2"]}],
                   "automatic_pool": {"size": "+1", "reclaim": true}}),
        ),
        (
            json!({"subnets": [{"interface": "eth0", "ipv4": ["lan"]}, {"interface": "net1", "ipv4": ["back"]}],
                   "ippool-ip-number": "+2", "ippool-reclaim": "false"}),
            json!({}),
            json!({"interfaces": [{"name": "eth0", "subnets": ["lan"]}, {"name": "net1", "subnets": ["back"]}],
                   "automatic_pool": {"size": "+2", "reclaim": false}}),
        ),
        (
            json!({"subnet": {"ipv4": ["lan"]}, "ippool-ip-number": "5", "reclaim-ippool": "true"}),
            json!({}),
            json!({"interfaces": [{"name": "eth0", "subnets": ["lan"]}],
                   "automatic_pool": {"size": "5", "reclaim": true}}),
        ),
        (
            json!({"routes": [{"dst": "10.9.0.0/16", "gw": "10.1.0.1"}], "default-route-nic": "eth0"}),
            json!({}),
            json!({"interfaces": [{"name": "eth0"}],
                   "routes": [{"destination": "10.9.0.0/16", "gateway": "10.1.0.1"}],
                   "default_route_interface": "eth0"}),
        ),
        // Go drops the host bits of a destination.
        (
            json!({"routes": [{"dst": "10.9.0.5/16", "gw": "10.1.0.1"}]}),
            json!({}),
            json!({"interfaces": [{"name": "eth0"}],
                   "routes": [{"destination": "10.9.0.0/16", "gateway": "10.1.0.1"}]}),
        ),
        // Go ignores the case of keys and unknown keys, and reads `null` and an empty name as absent.
        (
            json!({"ippools": [{"Interface": "eth0", "IPv4": ["a"], "ipv6": null, "CleanGateway": true,
                                "note": 7},
                               {"interface": "net1", "ipv6": ["b"]}],
                   "routes": [{"Dst": "10.9.0.0/16", "GW": "10.1.0.1", "mtu": 1500}]}),
            json!({}),
            json!({"interfaces": [{"name": "eth0", "ipv4_pools": ["a"], "clean_gateway": true},
                                  {"name": "net1", "ipv6_pools": ["b"]}],
                   "routes": [{"destination": "10.9.0.0/16", "gateway": "10.1.0.1"}]}),
        ),
        (
            json!({"ippools": [{"interface": "", "ipv4": ["a"]}, {"ipv4": ["b"]}]}),
            json!({}),
            json!({"interfaces": [{"name": "eth0", "ipv4_pools": ["a"]},
                                  {"name": "net1", "ipv4_pools": ["b"]}]}),
        ),
        (
            json!({"subnet": {"IPV4": ["lan"]}, "ippool-reclaim": "False"}),
            json!({}),
            json!({"interfaces": [{"name": "eth0", "subnets": ["lan"]}],
                   "automatic_pool": {"size": "+1", "reclaim": false}}),
        ),
        // Constants of Spiderpool without effect, and its annotations of other parts.
        (
            json!({"network-status": "[{}]", "cdi-version": "0.5.0", "ippool-cidr": "10-1-0-0-24",
                   "app-kind": "Job", "cni.spidernet.io/rdma-resource-inject": "x",
                   "multus.spidernet.io/cr-name": "y"}),
            json!({}),
            json!({"interfaces": [{"name": "eth0"}]}),
        ),
        // The attachment of each interface that Multus makes, also of those that an annotation adds.
        (
            json!({"k8s.v1.cni.cncf.io/networks": "kube-system/fabric",
                   "ippools": [{"interface": "eth0", "ipv4": ["a"]}, {"interface": "net1", "ipv4": ["b"]}]}),
            json!({}),
            json!({"interfaces": [{"name": "eth0", "ipv4_pools": ["a"]},
                                  {"name": "net1", "ipv4_pools": ["b"],
                                   "network_attachment": "kube-system/fabric"}]}),
        ),
        // Only the first of the four annotations counts (entry 14), but the others must be valid, too.
        (
            json!({"ippools": [{"interface": "eth0", "ipv4": ["a"]}], "ippool": {"ipv4": ["b"]}}),
            json!({}),
            json!({"interfaces": [{"name": "eth0", "ipv4_pools": ["a"]}]}),
        ),
        (
            json!({"subnet": {"ipv4": ["lan"]}, "ippools": [{"interface": "eth0", "ipv4": ["a"]}],
                   "ippool-ip-number": "1"}),
            json!({}),
            json!({"interfaces": [{"name": "eth0", "subnets": ["lan"]}], "automatic_pool": {"size": "1", "reclaim": true}}),
        ),
        // Pools in a node's configuration are no contradiction.
        (
            json!({"ippool": {"ipv4": ["web"]}}),
            json!({"interfaces": [{"name": "eth0", "default_ipv4_pools": ["node"]}]}),
            json!({"interfaces": [{"name": "eth0", "ipv4_pools": ["web"], "default_ipv4_pools": ["node"]}]}),
        ),
    ];
    for (annotations, more, expected) in cases {
        assert_eq!(taken(&annotations, more).unwrap(), expected, "{annotations}");
    }
}

/// Entry 12 (A00003) of Spiderpool's own list: malformed annotations.
#[test]
fn a_contradictory_or_empty_annotation_is_refused() {
    let one = || json!({"interface": "eth0", "ipv4": ["a"]});
    let cases = [
        (json!({"ippool": "web"}), json!({}), "ipam.spidernet.io/ippool can't be read: "),
        (json!({"ippool": {}}), json!({}), "ippool names neither anything of IPv4 nor of IPv6"),
        (json!({"ippool": {"ipv4": []}}), json!({}), "ippool names neither"),
        (json!({"ippool": {"ip4": ["web"]}}), json!({}), "unknown field \"ip4\"; did you mean \"ipv4\"?"),
        (json!({"ippool": {"IP4": ["web"]}}), json!({}), "unknown field \"IP4\"; did you mean \"ipv4\"?"),
        (json!({"ippool": {"note": ["web"]}}), json!({}), "ippool names neither"),
        (json!({"routes": [{"dest": "10.9.0.0/16", "gw": "10.1.0.1"}]}), json!({}), "did you mean \"dst\"?"),
        (json!({"ippool": {"ipv4": "web"}}), json!({}), "ippool can't be read: ipv4: invalid type"),
        (json!({"ippool": {"ipv4": ["We_b"]}}), json!({}), "ippool can't be read: ipv4: "),
        (json!({"ippools": []}), json!({}), "ippools names no interface"),
        (json!({"ippools": [one(), one()]}), json!({}), "ippools names eth0 twice"),
        (
            json!({"ippools": [one(), {"ipv4": ["b"]}]}),
            json!({}),
            "names the interface of some entries and not of",
        ),
        (
            json!({"ippools": [{"interface": "net1", "ipv4": ["a"]}]}),
            json!({}),
            "ippools names net1, and eth0 is asked for",
        ),
        (json!({"ippools": [{"interface": "a/b", "ipv4": ["a"]}]}), json!({}), "ippools can't be read: "),
        (json!({"subnet": {"ipv4": ["lan-*"]}}), json!({}), "subnet can't be read: "),
        (json!({"subnet": {"ipv4": [], "ipv6": []}}), json!({}), "subnet names neither"),
        (
            json!({"subnets": [{"interface": "eth0", "ipv4": ["lan"]}, {"interface": "net1", "ipv4": ["lan"]}]}),
            json!({}),
            "subnets names subnet lan twice",
        ),
        (
            json!({"ippool-ip-number": "-1"}),
            json!({}),
            "ippool-ip-number: \"-1\" is not a number of addresses",
        ),
        (
            json!({"ippool-ip-number": "++2"}),
            json!({}),
            "ippool-ip-number: \"++2\" is not a number of addresses",
        ),
        (
            json!({"ippool-ip-number": "1e9"}),
            json!({}),
            "ippool-ip-number: \"1e9\" is not a number of addresses",
        ),
        (
            json!({"ippool-ip-number": "1000000000"}),
            json!({}),
            "ippool-ip-number: \"1000000000\" is too many",
        ),
        (json!({"ippool-ip-number": ""}), json!({}), "ippool-ip-number: \"\" is not a number of addresses"),
        (json!({"ippool-reclaim": "yes"}), json!({}), "ippool-reclaim must be true or false, and is \"yes\""),
        (json!({"ippool-reclaim": "true", "reclaim-ippool": "false"}), json!({}), "contradict each other"),
        (json!({"routes": [{"dst": "10.9.0.0/16"}]}), json!({}), "routes can't be read: missing field `gw`"),
        (json!({"routes": [{"dst": "10.9.0.0", "gw": "10.1.0.1"}]}), json!({}), "routes can't be read: "),
        (json!({"default-route-nic": "a b"}), json!({}), "default-route-nic: "),
        (json!({"ipool": "x"}), json!({}), "did you mean \"ipam.spidernet.io/ippool\"?"),
        (json!({"default-ipv4-ippool": "[\"x\"]"}), json!({}), "is said of a namespace"),
        // The annotation and the request both name a pool.
        (
            json!({"ippool": {"ipv4": ["a"]}}),
            json!({"interfaces": [{"name": "eth0", "ipv4_pools": ["b"]}]}),
            "ippool and interface eth0 of the request contradict each other",
        ),
        (
            json!({"ippool": {"ipv4": ["a"]}}),
            json!({"interfaces": [{"name": "eth0", "subnets": ["b"]}]}),
            "ippool and interface eth0 of the request contradict each other",
        ),
        (
            json!({"subnet": {"ipv4": ["lan"]}, "ippool-ip-number": "3"}),
            json!({"automatic_pool": {"size": "4"}}),
            "ippool-ip-number and automatic_pool.size of the request contradict",
        ),
        (
            json!({"subnet": {"ipv4": ["lan"]}, "ippool-reclaim": "true"}),
            json!({"automatic_pool": {"reclaim": false}}),
            "ippool-reclaim and automatic_pool.reclaim of the request contradict",
        ),
        (
            json!({"routes": [{"dst": "10.9.0.0/16", "gw": "10.1.0.1"}]}),
            json!({"routes": [{"destination": "10.8.0.0/16", "gateway": "10.1.0.1"}]}),
            "routes and routes of the request contradict",
        ),
        (
            json!({"default-route-nic": "eth0"}),
            json!({"default_route_interface": "net1"}),
            "default-route-nic and default_route_interface of the request contradict",
        ),
        (
            json!({"ippools": [one()], "default-route-nic": "net9"}),
            json!({}),
            "default-route-nic names net9, which is none of the interfaces",
        ),
        // An invalid annotation is an error even if it doesn't count.
        (json!({"ippools": [one()], "ippool": "x"}), json!({}), "ippool can't be read: "),
    ];
    for (annotations, more, says) in cases {
        let overrides = refused(annotations.clone(), more);
        assert!(overrides.contains(says), "{annotations}: {overrides}");
        assert!(overrides.contains(PREFIX), "{annotations}: {overrides}");
    }
}

#[test]
fn the_interface_that_asks_takes_what_is_said_of_one() {
    let attachment = json!({"node": "n1", "config": "net", "container_id": "c", "interface": "net1"});
    let more = json!({"attachment": attachment, "interfaces": [{"name": "net1"}, {"name": "eth0"}]});
    let overrides = taken(&json!({"ippool": {"ipv4": ["a"]}}), more.clone()).unwrap();
    let expected = json!([{"name": "net1", "ipv4_pools": ["a"]}, {"name": "eth0"}]);
    assert_eq!(overrides["interfaces"], expected);
    // The annotation may name any interface, also one that the request doesn't have.
    for other in ["eth0", "net1", "net7"] {
        let overrides = taken(&json!({"ippool": {"interface": other, "ipv4": ["a"]}}), more.clone()).unwrap();
        assert_eq!(overrides["interfaces"], expected, "{other}");
        let overrides =
            taken(&json!({"subnet": {"interface": other, "ipv4": ["lan"]}}), more.clone()).unwrap();
        assert_eq!(overrides["interfaces"], json!([{"name": "net1", "subnets": ["lan"]}, {"name": "eth0"}]));
        let overrides = taken(&json!({"ippool": {"interface": other, "ipv4": ["a"]}}), json!({})).unwrap();
        assert_eq!(overrides["interfaces"], json!([{"name": "eth0", "ipv4_pools": ["a"]}]), "{other}");
    }
    let overrides = refused(json!({"ippool": {"interface": "a/b", "ipv4": ["a"]}}), json!({}));
    assert!(overrides.contains("ippool can't be read: "), "{overrides}");
}
