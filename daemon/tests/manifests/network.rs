//! Network of a pod: its sandbox, attached by a real main plugin as Multus has it attached.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::Value;

use super::lab::{Lab, Node};
use super::pod::Pod;

const MAIN_PLUGINS: &str = "/usr/lib/cni";

/// Attachment of a pod to the network of its annotation.
pub(crate) struct Attachment {
    network: Value,
    pub(crate) addresses: Vec<String>,
}

impl Attachment {
    /// Attaches a pod to the network that its annotation names.
    pub(crate) fn make(lab: &Lab, node: &Node, pod: &Pod, name: &str) -> Self {
        let path = format!(
            "/apis/k8s.cni.cncf.io/v1/namespaces/{}/network-attachment-definitions/{name}",
            pod.namespace
        );
        let definition = lab.api.get(&path).unwrap();
        let network: Value = serde_json::from_str(definition["spec"]["config"].as_str().unwrap()).unwrap();
        node.run("ip link add eth1 type veth peer name far && ip link set eth1 up && ip link set far up");
        node.run(&format!("ip netns add {}", pod.name));
        let added = plugin(node, "ADD", pod, &network);
        let result: Value = serde_json::from_slice(&added.stdout).unwrap_or_else(|_| panic!("{added:?}"));
        let ips = result["ips"].as_array().unwrap_or_else(|| panic!("{result}"));
        let addresses: Vec<String> =
            ips.iter().map(|ip| ip["address"].as_str().unwrap().to_owned()).collect();
        let shown = node.run(&format!("ip -n {} address show dev net1", pod.name));
        assert!(addresses.iter().all(|address| shown.contains(address)), "{shown}");
        Self { network, addresses }
    }

    /// Releases the addresses.
    pub(crate) fn end(&self, node: &Node, pod: &Pod) {
        let released = plugin(node, "DEL", pod, &self.network);
        assert!(released.status.success(), "{released:?}");
    }
}

/// Runs the main plugin of a network on a node, as a runtime does for a container.
fn plugin(node: &Node, verb: &str, pod: &Pod, network: &Value) -> Output {
    let file = node.dir.path().join("network.json");
    fs::write(&file, network.to_string()).unwrap();
    let main = Path::new(MAIN_PLUGINS).join(network["type"].as_str().unwrap());
    let mut command = node.command(&[main.to_str().unwrap()]);
    command.env("CNI_COMMAND", verb).env("CNI_CONTAINERID", "c1").env("CNI_IFNAME", "net1");
    command.env("CNI_NETNS", format!("/run/netns/{}", pod.name));
    command.env("CNI_PATH", format!("/opt/cni/bin:{MAIN_PLUGINS}"));
    let Pod { namespace, name, uid, .. } = pod;
    let words = format!("K8S_POD_NAMESPACE={namespace};K8S_POD_NAME={name};K8S_POD_UID={uid}");
    command.env("CNI_ARGS", format!("IgnoreUnknown=1;{words};K8S_POD_INFRA_CONTAINER_ID=c1"));
    command.stdin(File::open(file).unwrap()).stdout(Stdio::piped()).output().unwrap()
}
