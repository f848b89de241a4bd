//! Pools and policies for hosts with kubectl, applied by real members.

use std::collections::BTreeMap;

use ipam_api::client::Call;
use serde_json::{Value, json};

use super::scene::Scene;
use crate::support::{LONG, until};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const OBJECTS: &str = "/apis/nmstate.io/v1/nodenetworkconfigurationpolicies";

/// Both pools of the proposal for kubernetes-nmstate, with a correct end of the second one.
const POOLS: &str = "
apiVersion: ipamd.internal/v1
kind: NodeIPPool
metadata: {name: traffic-1}
spec:
  range: {cidr: 10.10.10.0/24, start: 10.10.10.1, end: 10.10.10.10, exclude: ['10.10.10.4', '10.10.10.7']}
---
apiVersion: ipamd.internal/v1
kind: NodeIPPool
metadata: {name: traffic-2}
spec:
  range: {cidr: 10.10.11.0/24, start: 10.10.11.1, end: 10.10.11.10, exclude: ['10.10.11.4', '10.10.11.7']}
";

/// Policy of the proposal, with its captures.
const POLICY: &str = "
apiVersion: ipamd.internal/v1
kind: HostPolicy
metadata: {name: static-ip}
spec:
  nodeSelector: {role: worker}
  maxUnavailable: 100%
  capture:
    address-from-traffic-1: ippool.traffic-1.allocate
    address-from-traffic-2: ippool.traffic-2.allocate
  desiredState:
    interfaces:
    - name: eth1
      type: ethernet
      state: up
      ipv4:
        address:
        - ip: '{{ capture.address-from-traffic-1.ip }}'
          prefix-length: '{{ capture.address-from-traffic-1.prefix-length }}'
        dhcp: false
        enabled: true
    - name: eth2
      type: ethernet
      state: up
      ipv4:
        address:
        - ip: '{{ capture.address-from-traffic-2.ip }}'
          prefix-length: '{{ capture.address-from-traffic-2.prefix-length }}'
        dhcp: false
        enabled: true
";

impl Scene {
    /// Members that apply custom resources beside kubernetes-nmstate.
    async fn with_nmstate(members: usize) -> Self {
        let scene = Self::custom(members).await;
        let names = json!({
            "kind": "NodeNetworkConfigurationPolicy", "listKind": "NodeNetworkConfigurationPolicyList",
            "plural": "nodenetworkconfigurationpolicies", "singular": "nodenetworkconfigurationpolicy",
        });
        let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let schema = json!({"type": "object", "properties": {"spec": open, "status": open}});
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "nodenetworkconfigurationpolicies.nmstate.io"},
            "spec": {
                "group": "nmstate.io", "scope": "Cluster", "names": names,
                "versions": [{
                    "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": schema},
                }],
            },
        });
        scene.api.put(DEFINITIONS, definition);
        scene
    }

    fn apply(&self, text: &str) {
        self.kubectl(&["apply", "-f", "-"], text);
    }

    /// Waits until `kubectl wait` finds the condition `Available`.
    fn wait_for_available(&self, object: &str) {
        self.kubectl(&["wait", "--for=condition=Available", object, "--timeout=4m"], "");
    }

    async fn reason(&self, object: &str, reason: &str) {
        self.shows(object, "/conditions/0/reason", json!(reason)).await;
    }

    /// Holds an address of a pool for a host.
    async fn hold(&self, host: &str, pool: &str, address: &str) {
        let body = json!({
            "endpoint": {"realm": "default", "kind": "host", "namespace": "racks", "name": host},
            "lifecycle": "held",
            "interfaces": [{"name": "eth1", "ipv4_pools": [pool], "addresses": [address]}],
        });
        let call = Call::post("/v1/allocations").json(&body).unwrap().repeatable().within(LONG);
        self.ask().send(call).await.unwrap();
    }

    /// Creates or replaces a node of the policy.
    fn worker(&self, name: &str, is_ready: bool) {
        self.node(name, json!({"role": "worker", "kubernetes.io/hostname": name}), is_ready);
    }

    /// Addresses of both interfaces in the object of a node, once it exists.
    async fn configured(&self, node: &str) -> Vec<String> {
        let mut found = Vec::new();
        until(&format!("{node} has a policy of kubernetes-nmstate"), async || {
            let object = self.api.get(&format!("{OBJECTS}/static-ip.{node}"));
            let object = object
                .ok_or_else(|| format!("{:?}", self.api.list("/apis/ipamd.internal/v1/hostpolicies")))?;
            let interfaces = object["spec"]["desiredState"]["interfaces"].as_array().unwrap();
            let address = |one: &Value| {
                let address = &one["ipv4"]["address"][0];
                assert_eq!(address["prefix-length"], 24, "a number stays a number");
                address["ip"].as_str().unwrap().to_owned()
            };
            found = interfaces.iter().map(address).collect();
            Ok(())
        })
        .await;
        found
    }

    /// Number of addresses that the hosts of the policy hold.
    async fn by_host(&self) -> BTreeMap<String, usize> {
        let mut held = BTreeMap::new();
        for one in self.held().await.into_iter().filter(|one| one.endpoint.namespace.as_str() == "static-ip")
        {
            *held.entry(one.endpoint.name.to_string()).or_default() += 1;
        }
        held
    }

    async fn hosts_are(&self, hosts: &[&str]) {
        until(&format!("{hosts:?} hold addresses"), async || {
            let held = self.by_host().await;
            let is_it = held.keys().map(String::as_str).eq(hosts.iter().copied());
            if is_it { Ok(()) } else { Err(format!("{held:?}; {:?}", self.status("default").await)) }
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn n5_1_both_pools_of_the_proposal_show_its_offsets() {
    let scene = Scene::custom(1).await;
    scene.synced().await;
    scene.apply(POOLS);
    for pool in ["traffic-1", "traffic-2"] {
        scene.wait_for_available(&format!("nodeippool/{pool}"));
    }
    for (pool, prefix) in [("traffic-1", "10.10.10"), ("traffic-2", "10.10.11")] {
        for last in [8, 1, 2, 3, 5, 6] {
            scene.hold(&format!("{pool}-{last}"), pool, &format!("{prefix}.{last}")).await;
        }
    }
    for pool in ["traffic-1", "traffic-2"] {
        let object = format!("nodeippools/{pool}");
        scene.shows(&object, "/allocatedOffsets", json!([0, 1, 2, 4, 5, 7])).await;
        scene.reason(&object, "ReconciledPool").await;
    }
    let wide = json!({
        "apiVersion": "ipamd.internal/v1", "kind": "NodeIPPool", "metadata": {"name": "wide"},
        "spec": {
            "network": "other",
            "range": {"cidr": "10.10.11.0/16", "start": "10.10.11.4", "end": "10.10.12.10",
                      "exclude": ["10.10.11.5", "10.10.12.7"]},
        },
    });
    scene.apply(&wide.to_string());
    scene.reason("nodeippools/wide", "UnsyncronizedIPPool").await;
    let network = Call::put("/v1/networks/other").json(&json!({"name": "other"})).unwrap();
    scene.ask().send(network.within(LONG)).await.unwrap();
    scene.wait_for_available("ipdn/wide");
    for address in ["10.10.11.254", "10.10.12.1", "10.10.12.10"] {
        scene.hold(&format!("wide-{address}"), "wide", address).await;
    }
    scene.shows("nodeippools/wide", "/allocatedOffsets", json!([250, 251, 260])).await;
    scene.shows("nodeippools/wide", "/cidr", json!("10.10.0.0/16")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn n5_3_n5_5_a_pool_is_exhausted_grows_and_is_created_again() {
    let scene = Scene::custom(1).await;
    scene.synced().await;
    let pool = |name: &str, end: u8| {
        json!({
            "apiVersion": "ipamd.internal/v1", "kind": "NodeIPPool", "metadata": {"name": name},
            "spec": {"range": {"cidr": "10.10.10.0/24", "start": "10.10.10.1",
                               "end": format!("10.10.10.{end}")}},
        })
        .to_string()
    };
    scene.apply(&pool("traffic-1", 2));
    scene.wait_for_available("nodeippool/traffic-1");
    scene.apply(&pool("traffic-2", 9));
    scene.reason("nodeippools/traffic-2", "OverlappingIPPool").await;
    let shown = scene.kubectl(&["get", "nodeippool/traffic-2", "-o", "yaml"], "");
    assert!(shown.contains("The NodeIPPool traffic-1 is overlapping with this one."), "{shown}");
    scene.kubectl(&["delete", "nodeippool/traffic-2"], "");
    for last in [1, 2] {
        scene.hold(&format!("h{last}"), "traffic-1", &format!("10.10.10.{last}")).await;
    }
    scene.reason("nodeippools/traffic-1", "ExhaustedIPPool").await;
    let columns = scene.kubectl(&["get", "ipdn"], "");
    assert!(columns.contains("ExhaustedIPPool") && columns.contains("10.10.10.0/24"), "{columns}");
    scene.apply(&pool("traffic-1", 9));
    scene.wait_for_available("nodeippool/traffic-1");
    scene.kubectl(&["delete", "nodeippool/traffic-1"], "");
    until("the pool ends", async || {
        let call = Call::get("/v1/pools/traffic-1").within(LONG);
        let pool: Value = scene.ask().call(call).await.map_err(|problem| problem.detail)?;
        if pool["terminating"] == true { Ok(()) } else { Err(pool.to_string()) }
    })
    .await;
    scene.apply(&pool("traffic-1", 99));
    scene.wait_for_available("nodeippool/traffic-1");
    scene.shows("nodeippools/traffic-1", "/allocatedOffsets", json!([0, 1])).await;
    scene.shows("nodeippools/traffic-1", "/total", json!(99)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn n5_4_n5_7_nodes_get_policies_and_deleted_ones_are_released_by_a_new_leader() {
    let mut scene = Scene::with_nmstate(3).await;
    scene.synced().await;
    scene.worker("w1", true);
    scene.worker("w2", true);
    scene.apply(POOLS);
    scene.apply(POLICY);
    let (one, two) = (scene.configured("w1").await, scene.configured("w2").await);
    assert!(one.len() == 2 && one.iter().all(|address| !two.contains(address)), "{one:?} {two:?}");
    assert!(one[0].starts_with("10.10.10.") && one[1].starts_with("10.10.11."), "{one:?}");
    scene.hosts_are(&["w1", "w2"]).await;
    assert_eq!(scene.by_host().await["w1"], 2);
    // Two of three members: no leader sees the deletion.
    let leader = scene.cluster.leader().await;
    let other = (leader + 1) % 3;
    scene.cluster.members[leader].kill();
    scene.cluster.members[other].kill();
    assert!(scene.api.remove("/api/v1/nodes/w1"));
    scene.worker("w2", false);
    scene.cluster.start(leader);
    scene.cluster.start(other);
    scene.cluster.ready().await;
    scene.hosts_are(&["w2"]).await;
    until("its policy is deleted", async || match scene.api.get(&format!("{OBJECTS}/static-ip.w1")) {
        None => Ok(()),
        Some(object) => Err(object.to_string()),
    })
    .await;
    scene.scans(3).await;
    scene.hosts_are(&["w2"]).await;
    assert_eq!(scene.configured("w2").await, two, "a node that is not ready keeps its addresses");
}
