//! `/v1/nodes`.

use ipam_api::access::NodeKey;
use ipam_api::name::ResourceName;
use ipam_api::resource::{Node, NodeStatus, Resource};
use ipam_machine::State;
use ipam_machine::command::NodeSpec;

use super::named::{NamedResource, View, of_kind};
use crate::http::convert::{conversions, meta};
use crate::http::list::{Row, Shape};
use crate::http::report::agent::agent;

pub(in crate::http) struct Nodes;

/// Fields, filters and orders of the list.
pub(in crate::http) const SHAPE: Shape = Shape {
    path: "/v1/nodes",
    own: &[
        Row::text("realm", "realm"),
        Row::text("name", "name"),
        Row::shown(&["status"]),
        Row::text("boot_id", "status.boot_id"),
        Row::flag("ready", "status.agent.ready"),
        Row::text("agent_version", "status.agent.agent_version"),
        Row::text("heard_at", "status.agent.heard_at"),
        Row::text("managed_by", "managed_by").unshown(),
    ],
    named: true,
    addressed: false,
};

conversions! { Node <=> NodeSpec { realm, name } }

impl NamedResource for Nodes {
    of_kind!(Node, NodeStatus, nodes, PutNode, |node| ResourceName::in_realm(&node.realm, &node.name));

    fn view(state: &State, row: &Self::Row) -> View<Self> {
        let boots = state.boots_of(&row.spec.realm, &row.spec.name);
        let key = NodeKey { realm: row.spec.realm.clone(), name: row.spec.name.clone() };
        let agent = agent(state, &key);
        let boot_id = agent.as_ref().map(|agent| agent.boot_id.clone()).or_else(|| {
            boots.and_then(|(_, boots)| boots.present()).map(|boot| boot.earliest.boot_id.to_string())
        });
        let spec = to_json(row.spec.clone());
        Resource { spec, meta: meta(&row.meta), status: NodeStatus { boot_id, agent } }
    }
}
