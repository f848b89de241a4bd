//! `/v1/nodes`.

use ipam_api::name::ResourceName;
use ipam_api::resource::{Node, NodeStatus, Resource};
use ipam_machine::command::{Expect, NodeSpec, Put};
use ipam_machine::{Action, State};

use super::named::{NamedResource, View, of_kind};
use crate::http::convert::{meta, metadata, metadata_out};
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

impl NamedResource for Nodes {
    of_kind!(Node, NodeStatus, nodes);

    fn name(spec: &Node) -> ResourceName {
        ResourceName::in_realm(&spec.realm, &spec.name)
    }

    fn put(node: Node, expect: Expect) -> Action {
        let Node { realm, name, description, labels, annotations, managed_by } = node;
        let metadata = metadata(description, labels, annotations, managed_by);
        Action::PutNode(Put { spec: NodeSpec { realm, name, metadata }, expect })
    }

    fn view(state: &State, row: &Self::Row) -> View<Self> {
        let NodeSpec { realm, name, metadata } = &row.spec;
        let (description, labels, annotations, managed_by) = metadata_out(metadata);
        let spec =
            Node { realm: realm.clone(), name: name.clone(), description, labels, annotations, managed_by };
        let boots = state.boots_of(realm, name);
        let boot_id =
            boots.and_then(|(_, boots)| boots.present()).map(|boot| boot.earliest.boot_id.to_string());
        Resource { spec, meta: meta(&row.meta), status: NodeStatus { boot_id } }
    }
}
