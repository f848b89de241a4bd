//! Node as its mirror.

use std::collections::BTreeSet;

use ipam_api::Code;
use ipam_api::brand::NODE_STATE;
use ipam_api::name::{Name, ObjectName};
use ipam_api::resource::{Labels, Node};

use super::labels::chosen;
use super::step::Mirror;
use crate::objects::NodeFacts;

/// Nodes.
#[derive(Debug)]
pub(crate) struct NodeMirror;

impl Mirror for NodeMirror {
    type Spec = Node;
    type Facts = NodeFacts;
    const PLURAL: &'static str = "nodes";

    fn blank(realm: &Name, name: &ObjectName) -> Node {
        Node {
            realm: realm.clone(),
            name: name.clone(),
            description: String::new(),
            labels: Labels::new(),
            annotations: Labels::new(),
            managed_by: None,
        }
    }

    fn name(spec: &Node) -> &ObjectName {
        &spec.name
    }

    fn manager(spec: &mut Node) -> &mut Option<String> {
        &mut spec.managed_by
    }

    fn labels(facts: &NodeFacts) -> &Labels {
        &facts.labels
    }

    fn fill(spec: &mut Node, facts: &NodeFacts, selected: &BTreeSet<String>) -> Result<(), Code> {
        spec.labels = chosen(&facts.labels, selected);
        spec.annotations.insert(NODE_STATE.to_owned(), facts.state.as_str().to_owned());
        Ok(())
    }
}
