//! Report of what the removal of a node releases, in its file format.

use std::net::IpAddr;

use ipam_api::access::NodeKey;
use ipam_api::name::{InterfaceName, Name};
use ipam_api::resource::{EndpointKey, EndpointKind, Lifecycle};
use serde::{Deserialize, Serialize};

use crate::output::table::Table;

/// Allocations and claims that end with a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Report {
    pub(super) node: NodeKey,
    /// Allocations, each by its id.
    pub(super) items: Vec<Line>,
    /// Endpoints of the host whose requests wait. Their claims are withdrawn.
    pub(super) waiting: Vec<EndpointKey>,
    /// Revision of the observed state.
    pub(super) revision: u64,
}

/// Allocation that ends with its node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Line {
    pub(super) endpoint: EndpointKey,
    pub(super) interface: InterfaceName,
    pub(super) network: Name,
    pub(super) address: IpAddr,
    pub(super) lifecycle: Lifecycle,
    /// Id of the allocation.
    pub(super) allocation: u64,
}

impl Line {
    /// Sort key of the lines.
    pub(super) fn order(&self) -> (&EndpointKey, &InterfaceName, IpAddr, u64) {
        (&self.endpoint, &self.interface, self.address, self.allocation)
    }

    /// True if the allocation ends with an attachment on the node, and not with its host.
    pub(super) fn is_attached(&self) -> bool {
        self.lifecycle == Lifecycle::Attached
    }
}

impl Report {
    /// First line that belongs neither to the node's host nor to an attachment.
    pub(super) fn odd(&self) -> Option<&Line> {
        let is_host = |key: &EndpointKey| {
            key.kind == EndpointKind::Host && key.realm == self.node.realm && key.name == self.node.name
        };
        self.items.iter().find(|line| !line.is_attached() && !is_host(&line.endpoint))
    }

    /// True if the node has no allocations and no claims.
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty() && self.waiting.is_empty()
    }

    /// Table of the allocations.
    pub(super) fn table(&self) -> Table {
        Table::of(&self.items)
            .text("ENDPOINT", |line| &line.endpoint)
            .text("INTERFACE", |line| &line.interface)
            .text("ADDRESS", |line| line.address)
            .spare("LIFECYCLE", 2, |line| line.lifecycle)
            .spare("ALLOCATION", 1, |line| line.allocation)
            .table()
    }
}
