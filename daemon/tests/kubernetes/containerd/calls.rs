//! Calls of the plugin by containerd: the annotations, the order of `CNI_ARGS`, and each DEL.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::{Value, json};

use super::kubelet::Pod;
use super::node::{Node, POD_ANNOTATIONS, bridge, ipam};
use crate::support::Cluster;
use crate::support::ask::make_pools;
use crate::support::live::{Addresses, settled};
use crate::support::machine::write_script;

/// One run of the plugin.
#[derive(Debug)]
struct Call {
    environment: BTreeMap<String, String>,
    input: Value,
    code: String,
}

impl Call {
    fn is(&self, verb: &str) -> bool {
        self.environment["CNI_COMMAND"] == verb
    }

    /// Keys and values of `CNI_ARGS`.
    fn arguments(&self) -> BTreeMap<&str, &str> {
        let pairs = self.environment["CNI_ARGS"].split(';');
        pairs.map(|pair| pair.split_once('=').unwrap()).collect()
    }
}

/// Runs of the plugin for a pod, in their order.
fn calls(node: &Node, pod: &Pod) -> Vec<Call> {
    let read = |name: String| fs::read_to_string(node.machine.opt().join("calls").join(name)).unwrap();
    let files = fs::read_dir(node.machine.opt().join("calls")).unwrap();
    let names = files.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: BTreeSet<String> =
        names.filter_map(|name| Some(name.strip_suffix(".code")?.to_owned())).collect();
    let calls = names.into_iter().map(|name| Call {
        environment: read(format!("{name}.env"))
            .lines()
            .filter_map(|line| line.split_once('='))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect(),
        input: serde_json::from_str(&read(format!("{name}.in"))).unwrap(),
        code: read(format!("{name}.code")).trim_end().to_owned(),
    });
    calls.filter(|call| call.arguments()["K8S_POD_NAME"] == pod.name).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_of_containerd_for_a_pod_succeeds() {
    let cluster = Cluster::up(1).await;
    make_pools(&cluster.ask()).await;
    let plugin = bridge(ipam("node-1", json!({"ipv4_pools": ["web"], "ipv6_pools": ["web6"]})));
    let node = Node::make("node-1", &cluster.urls(), plugin, |root| {
        fs::create_dir(root.join("opt/calls")).unwrap();
        let plugin = root.join("opt/cni/bin/ipam-cni");
        fs::remove_file(&plugin).unwrap();
        write_script(&plugin, include_str!("record.sh"));
    })
    .await;
    let large = "x<>&".repeat(60 << 10);
    let pods = [
        Pod::new("silent", &[]),
        Pod::new(
            "large",
            &[("example.com/large", &large), ("ipam.spidernet.io/ippool", r#"{"ipv4":["web"]}"#)],
        ),
    ];
    let mut sandboxes = Vec::new();
    for pod in &pods {
        sandboxes.push(node.kubelet.create(pod).await);
    }
    let refused = Pod::new("refused", &[("ipam.spidernet.io/routes", "x")]);
    let error = node.kubelet.create_once(&refused).await.error.unwrap();
    assert!(error.contains("ipam.spidernet.io/routes can't be read"), "{error}");
    // It is deleted twice, as by a kubelet that missed the answer.
    for pod in pods.iter().chain(&pods).chain([&refused]) {
        node.kubelet.delete(pod).await;
    }
    settled(&cluster, &Addresses::new()).await;
    for (pod, sandbox) in pods.iter().zip(&sandboxes) {
        let calls = calls(&node, pod);
        assert!(calls.iter().all(|call| call.code == "0"), "{calls:?}");
        let (adds, dels): (Vec<&Call>, Vec<&Call>) = calls.iter().partition(|call| call.is("ADD"));
        assert!(adds.len() == 1 && dels.len() >= 2, "{calls:?}");
        for call in &calls {
            let arguments = [
                ("IgnoreUnknown", "1"),
                ("K8S_POD_INFRA_CONTAINER_ID", &sandbox.sandbox),
                ("K8S_POD_NAME", &pod.name),
                ("K8S_POD_NAMESPACE", "shop"),
                ("K8S_POD_UID", &pod.uid),
            ];
            assert_eq!(call.arguments(), arguments.into());
            let annotations = &call.input["runtimeConfig"][POD_ANNOTATIONS];
            let expected = if pod.annotations.is_empty() { Value::Null } else { json!(pod.annotations) };
            assert_eq!(*annotations, expected);
        }
        // The first DEL knows the namespace and the result; the last one neither.
        let knows =
            |call: &Call| (!call.environment["CNI_NETNS"].is_empty(), call.input.get("prevResult").is_some());
        assert_eq!(knows(dels[0]), (true, true));
        assert_eq!(knows(dels[dels.len() - 1]), (false, false));
    }
    let calls = calls(&node, &refused);
    let codes: Vec<(bool, &str)> = calls.iter().map(|call| (call.is("ADD"), &*call.code)).collect();
    assert!(codes[0] == (true, "1") && codes[1..].iter().all(|code| *code == (false, "0")), "{calls:?}");
    assert!(codes.len() >= 2, "{calls:?}");
}
