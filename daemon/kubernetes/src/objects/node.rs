//! Nodes: their labels and their state.

use ipam_api::name::ObjectName;
use ipam_api::resource::Labels;
use ipam_api::workload::WorkloadNodeState;
use serde::Deserialize;

use super::object::Object;

/// Node with the fields that are mirrored.
pub(crate) type Nodes = Object<NodeSpec, NodeStatus>;

/// Taint by which an operator declares that a node is shut down.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NodeSpec {
    taints: Option<Vec<Taint>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Taint {
    key: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NodeStatus {
    conditions: Option<Vec<Condition>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

/// State of a node that exists.
pub(crate) type NodeState = WorkloadNodeState;

/// Part of a node that the watcher keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeFacts {
    pub(crate) labels: Labels,
    pub(crate) state: NodeState,
}

impl Nodes {
    /// Name and facts of the node.
    pub(crate) fn facts(self) -> Option<(ObjectName, NodeFacts)> {
        let name = ObjectName::new(&self.metadata.name).ok()?;
        let is_ready = self.status.conditions.iter().flatten();
        let is_ready = is_ready.into_iter().any(|one| one.kind == "Ready" && one.status == "True");
        let is_out = self.spec.taints.iter().flatten().any(|taint| taint.key == OUT_OF_SERVICE);
        let state = match (is_out, is_ready) {
            (true, _) => NodeState::OutOfService,
            (false, true) => NodeState::Ready,
            (false, false) => NodeState::NotReady,
        };
        Some((name, NodeFacts { labels: self.metadata.labels.0, state }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_state_of_a_node_is_its_condition_or_its_taint() {
        let ready = |status: &str| {
            json!([{"type": "MemoryPressure", "status": "True"},
                                          {"type": "Ready", "status": status}])
        };
        for (conditions, taints, state) in [
            (ready("True"), json!([]), NodeState::Ready),
            (ready("False"), json!([]), NodeState::NotReady),
            (ready("Unknown"), json!(null), NodeState::NotReady),
            (json!(null), json!([]), NodeState::NotReady),
            (ready("True"), json!([{"key": OUT_OF_SERVICE}]), NodeState::OutOfService),
            (ready("False"), json!([{"key": OUT_OF_SERVICE}]), NodeState::OutOfService),
            (ready("True"), json!([{"key": "node.kubernetes.io/unreachable"}]), NodeState::Ready),
        ] {
            let node = json!({"metadata": {"name": "n7", "labels": {"zone": "a"}},
                              "spec": {"taints": taints}, "status": {"conditions": conditions}});
            let (name, facts) = serde_json::from_value::<Nodes>(node.clone()).unwrap().facts().unwrap();
            assert_eq!((name.as_str(), facts.state), ("n7", state), "{node}");
            assert_eq!(facts.labels["zone"], "a");
        }
    }
}
