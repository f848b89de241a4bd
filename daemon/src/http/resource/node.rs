//! `/v1/nodes`.

use ipam_api::address::AddressRange;
use ipam_api::name::ResourceName;
use ipam_api::resource::{Labels, Node, NodeStatus, Resource};
use ipam_machine::command::{Expect, Kind, NodeIntention, Put, Stored};
use ipam_machine::{Action, State, model};

use super::named::Kinded;
use crate::http::convert::{labels, meta, remarks};
use crate::http::list::{Row, Shape};

/// Nodes.
pub(in crate::http) struct Nodes;

/// What can be asked of the list.
pub(in crate::http) const SHAPE: Shape = Shape {
    path: "/v1/nodes",
    own: &[
        Row::text("realm", "realm"),
        Row::text("name", "name"),
        Row::shown(&["status"]),
        Row::text("boot_id", "status.boot_id"),
        Row::text("managed_by", "managed_by").unshown(),
    ],
    named: true,
    addressed: false,
};

impl Kinded for Nodes {
    const KIND: Kind = Kind::Node;
    type Intention = Node;
    type Status = NodeStatus;
    type Row = model::Node;
    const SHAPE: &'static Shape = &SHAPE;

    fn name(intention: &Node) -> ResourceName {
        ResourceName::in_realm(&intention.realm, &intention.name)
    }

    fn put(node: Node, expect: Expect) -> Action {
        let Node { realm, name, description, labels, annotations, managed_by } = node;
        let remarks = remarks(description, labels, annotations, managed_by);
        Action::PutNode(Put { intention: NodeIntention { realm, name, remarks }, expect })
    }

    fn labels(intention: &Node) -> &Labels {
        &intention.labels
    }

    fn ranges(_: &Resource<Node, NodeStatus>) -> Vec<AddressRange> {
        Vec::new()
    }

    fn row(state: &State, id: u64) -> Option<&model::Node> {
        state.nodes.get(id.into())
    }

    fn stored(stored: Stored) -> Option<model::Node> {
        match stored {
            Stored::Node(row) => Some(row),
            _ => None,
        }
    }

    fn view(state: &State, row: &model::Node) -> Resource<Node, NodeStatus> {
        let NodeIntention { realm, name, remarks } = &row.intention;
        let intention = Node {
            realm: realm.clone(),
            name: name.clone(),
            description: remarks.description.to_string(),
            labels: labels(&remarks.labels),
            annotations: labels(&remarks.annotations),
            managed_by: remarks.managed_by.as_ref().map(ToString::to_string),
        };
        let boots = state.boots_of(realm, name);
        let boot_id =
            boots.and_then(|(_, boots)| boots.present()).map(|boot| boot.earliest.boot_id.to_string());
        Resource { intention, meta: meta(&row.meta), status: NodeStatus { boot_id } }
    }
}
