//! Two sandboxes of one pod, in network namespaces without a runtime.

use std::net::IpAddr;

use serde_json::Value;

use super::moment::before_del;
use super::node::{Addresses, Node, words_of_plugin};

const POD: &str = "CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0;K8S_POD_UID=u-1";

/// Variables of a run for a sandbox, whose namespace has the same name.
fn variables(sandbox: &str) -> [String; 3] {
    [
        format!("CNI_CONTAINERID={sandbox}"),
        format!("CNI_NETNS=/run/netns/{sandbox}"),
        "CNI_IFNAME=eth0".to_owned(),
    ]
}

/// Makes a sandbox; its addresses.
fn add(node: &Node, sandbox: &str) -> Vec<IpAddr> {
    node.run(&["ip", "netns", "add", sandbox]);
    let variables = variables(sandbox);
    let output = node.plugin("ADD", &[&variables.each_ref().map(String::as_str)[..], &[POD]].concat());
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let addresses = result["ips"].as_array().unwrap_or_else(|| panic!("{result}")).iter();
    let address = |ip: &Value| ip["address"].as_str().unwrap().split('/').next().unwrap().parse().unwrap();
    let mut addresses: Vec<IpAddr> = addresses.map(address).collect();
    addresses.sort();
    addresses
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_del_of_a_sandbox_spares_the_next_sandbox_of_the_pod() {
    let node = Node::make().await;
    let first = add(&node, "first");
    let variables = variables("first");
    let variables = [&variables.each_ref().map(String::as_str)[..], &[POD]].concat();
    let (order, mut child) = node.run_to(before_del(), &words_of_plugin("CNI_COMMAND=DEL", &variables)).await;
    node.run(&["ip", "netns", "del", "first"]);
    let second = add(&node, "second");
    assert_eq!(first, second);
    let live = Addresses::from([("second".to_owned(), second)]);
    node.settled(&live).await;
    drop(order);
    assert!(child.wait().unwrap().success());
    assert_eq!(node.allocated().await, live);
    // Nor does the namespace that is gone end what the other sandbox has.
    add_and_lose(&node).await;
    node.settled(&live).await;
}

/// A sandbox of another pod that ends without a DEL: an inventory that finds it has looked at all.
async fn add_and_lose(node: &Node) {
    node.run(&["ip", "netns", "add", "lost"]);
    let added = node.plugin("ADD", &variables("lost").each_ref().map(String::as_str));
    assert!(added.status.success());
    node.run(&["ip", "netns", "del", "lost"]);
}
