//! Members, one node with its agent, and an API server.

use ipam_api::agent::Verdict;
use ipam_api::resource::Allocation;
use serde_json::{Value, json};
use test_apiserver::ApiServer;

use crate::support::agent::Agent;
use crate::support::ask::{allocations, subnet_with_pool};
use crate::support::plugin::{Outcome, Plugin};
use crate::support::{Cluster, until};

/// Namespace of the pods.
const PODS: &str = "/api/v1/namespaces/shop/pods";
pub(super) const EVENTS: &str = "/api/v1/namespaces/shop/events";
pub(super) const NODE: &str = "node-1";

pub(super) struct Scene {
    pub(super) cluster: Cluster,
    pub(super) api: ApiServer,
    pub(super) agent: Agent,
}

impl Scene {
    /// One member with the pools `web` and `db`, by the label `app`, and an agent that watches pods.
    pub(super) async fn start(more: &str) -> Self {
        let (cluster, api) = (Cluster::up(1).await, ApiServer::start());
        for (name, cidr) in [("web", "10.1.0.0/24"), ("db", "10.2.0.0/24")] {
            let more = json!({"endpoint_selector": format!("app={name}"), "default": true});
            subnet_with_pool(&cluster.ask(), name, cidr, more).await;
        }
        let more = format!("[kubernetes]\nserver = {:?}\n{more}", api.url());
        let agent = Agent::up(&cluster.urls(), NODE, &more).await;
        Self { cluster, api, agent }
    }

    /// Creates or replaces a pod of the node.
    pub(super) fn pod(&self, name: &str, app: &str, more: Value) -> String {
        let mut pod = json!({"metadata": {"name": name, "labels": {"app": app}}, "spec": {"nodeName": NODE}});
        pod["metadata"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let pod = self.api.put(PODS, pod);
        pod["metadata"]["uid"].as_str().unwrap().to_owned()
    }

    pub(super) fn remove(&self, name: &str) {
        assert!(self.api.remove(&format!("{PODS}/{name}")));
    }

    /// A run of the plugin for a pod's container, with this part of the configuration.
    pub(super) async fn run_with(
        &self,
        verb: &'static str,
        (container, name, uid): (&str, &str, &str),
        conf: &Value,
    ) -> Outcome {
        let pod = format!("IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME={name};K8S_POD_UID={uid}");
        Plugin::new(verb, container, conf).arguments(&pod).run().await
    }

    /// The same with a configuration that names no pools.
    pub(super) async fn run(&self, verb: &'static str, pod: (&str, &str, &str)) -> Outcome {
        self.run_with(verb, pod, &self.agent.network(&[])).await
    }

    /// Waits until the view has this many pods and is healthy, or is not.
    pub(super) async fn sees(&self, pods: usize, verdict: Verdict) -> String {
        until(&format!("the view has {pods} pods: {verdict:?}"), async || {
            let check = self.agent.check("pods").await;
            let is_so = check.detail.starts_with(&format!("{pods} pods,")) && check.verdict == verdict;
            if is_so { Ok(check.detail) } else { Err(format!("{check:?}\n{}", self.agent.logged())) }
        })
        .await
    }

    pub(super) async fn held(&self) -> Vec<Allocation> {
        allocations(&self.cluster.ask()).await
    }

    /// Resident memory of the agent.
    pub(super) fn resident_kib(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.agent.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().split(' ').next().unwrap().parse().unwrap()
    }
}

/// Reference to the controller of a pod.
pub(super) fn owned(api_version: &str, kind: &str, name: &str, uid: &str) -> Value {
    let owner =
        json!({"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": true});
    json!({"ownerReferences": [owner]})
}
