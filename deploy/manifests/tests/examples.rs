//! Examples: objects of Kubernetes, and network configurations that use the socket of the agents.

use ipam_manifests::{documents, folder};
use serde_json::Value;

use crate::{object, rendered};

/// Objects of all example files except the file with resources of ipamd, by the names of the files.
pub(crate) fn objects() -> Vec<(String, Vec<Value>)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder().join("examples")).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if name != "pools.yaml" {
            all.push((name, documents(&std::fs::read_to_string(entry.path()).unwrap()).unwrap()));
        }
    }
    all
}

/// Network configurations of an object.
fn networks(object: &Value) -> Vec<Value> {
    let texts: Vec<&Value> = match object["kind"].as_str().unwrap() {
        "ConfigMap" => object["data"].as_object().unwrap().values().collect(),
        "NetworkAttachmentDefinition" => vec![&object["spec"]["config"]],
        _ => Vec::new(),
    };
    texts.into_iter().map(|text| serde_json::from_str(text.as_str().unwrap()).unwrap()).collect()
}

#[test]
fn networks_use_the_socket_and_the_pools_of_the_deployment() {
    let deployed = rendered(".");
    let pod = &object(&deployed, "DaemonSet", "ipam-agent")["spec"]["template"]["spec"];
    let probe = &pod["containers"][0]["readinessProbe"]["exec"]["command"];
    let socket = probe.as_array().unwrap().last().unwrap();
    let pools = crate::file("deploy/kubernetes/examples/pools.yaml");
    let mut types = Vec::new();
    for (name, objects) in objects() {
        for network in objects.iter().flat_map(networks) {
            let plugin = network["plugins"].get(0).unwrap_or(&network);
            types.push(plugin["type"].as_str().unwrap().to_owned());
            assert_eq!(plugin["ipam"]["type"], "ipam-cni", "{name}");
            assert_eq!(&plugin["ipam"]["socket"], socket, "{name}");
            for family in ["ipv4_pools", "ipv6_pools"] {
                for pool in plugin["ipam"][family].as_array().into_iter().flatten() {
                    assert!(pools.contains(&format!("name: {}\n", pool.as_str().unwrap())), "{name}: {pool}");
                }
            }
        }
    }
    types.sort();
    assert_eq!(types, ["bridge", "bridge", "ipvlan", "ipvlan", "macvlan", "macvlan"]);
}

#[test]
fn pods_name_networks_of_their_namespace() {
    let (_, objects) = objects().into_iter().find(|(name, _)| name == "multus.yaml").unwrap();
    let pod = object(&objects, "Pod", "web");
    let network = pod["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"].as_str().unwrap();
    let definition = object(&objects, "NetworkAttachmentDefinition", network);
    assert_eq!(definition["metadata"]["namespace"], pod["metadata"]["namespace"]);
}
