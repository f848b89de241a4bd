//! Nodes as their agents report them: silent ones, links, and the agents that probe a subnet.

use crate::state::State;
use crate::state::id::{AllocationId, AttachmentId, Id, SubnetId};
use crate::state::row::{Allocation, Network, NodeReport, Silence, Subnet};
use crate::tree::TreeSet;
use ipam_api::Family;
use ipam_api::access::NodeKey;
use ipam_api::address::number;
use ipam_api::limits::{
    NODE_GRACE_MS_MIN, PROBER_SILENCE_MS_MAX, PROBER_TERM_MS, PROBERS_PER_SUBNET, SILENCE_VALID_MS,
};
use ipam_api::name::Name;
use ipam_api::request::AttachmentKey;
use ipnet::IpNet;
use std::net::IpAddr;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Maximum number of probed subnets per link.
const SUBNETS_PER_LINK_MAX: usize = 1024;

impl Silence {
    /// Returns true if the newest probe round is recent enough to be evidence.
    pub(crate) fn is_recent(&self, now_ms: u64) -> bool {
        self.last_ms.saturating_add(SILENCE_VALID_MS) >= now_ms
    }
}

impl State {
    /// Attachments of an allocation on a node.
    pub(crate) fn attachments_on_node<'a>(
        &'a self,
        row: &'a Allocation,
        node: &'a NodeKey,
    ) -> impl Iterator<Item = AttachmentId> + use<'a> {
        let here = |key: &AttachmentKey| (&key.realm, &key.node) == (&node.realm, &node.name);
        self.attachments_of(row).filter(move |(_, attachment)| here(&attachment.key)).map(|(id, _)| id)
    }

    /// Returns true if a node has an attachment of an allocation.
    pub(crate) fn is_attached_on(&self, row: &Allocation, node: &NodeKey) -> bool {
        self.attachments_on_node(row, node).next().is_some()
    }

    /// Returns true if an allocation is attached, and not on this node.
    pub(crate) fn is_elsewhere(&self, row: &Allocation, node: &NodeKey) -> bool {
        row.attachment.is_some() && !self.is_attached_on(row, node)
    }

    /// Returns true if the node of an allocation has been silent for the shortest grace.
    pub(crate) fn is_suspect(&self, row: &Allocation) -> bool {
        self.node_of(row).is_some_and(|of| self.is_silent(&of, NODE_GRACE_MS_MIN))
    }

    /// The node of an allocation.
    pub(crate) fn node_of(&self, row: &Allocation) -> Option<NodeKey> {
        let realm = self.endpoints.named(row.endpoint).key.realm.clone();
        row.node.clone().map(|name| NodeKey { realm, name })
    }

    /// Returns those of the listed allocations that still exist.
    pub(crate) fn present_of(&self, ids: &[AllocationId]) -> Vec<AllocationId> {
        ids.iter().copied().filter(|id| self.allocations.get(*id).is_some()).collect()
    }

    /// Returns true if the newest heartbeat of a node is older than a time. A node that was never heard is
    /// not silent: it may have no agent.
    pub(crate) fn is_silent(&self, node: &NodeKey, grace_ms: u64) -> bool {
        let report = self.report_of(node).map(|(_, report)| report);
        report.is_some_and(|report| report.heard_ms.saturating_add(grace_ms) < self.log_time_ms())
    }

    /// Nodes that have been silent for a time, the longest first.
    pub fn silent_nodes(&self, grace_ms: u64) -> impl Iterator<Item = &NodeReport> {
        self.silent_nodes_from(grace_ms, None).map(|(_, report)| report)
    }

    /// Like [`Self::silent_nodes`], after a position. Each report comes with its position: log time of the
    /// newest heartbeat, and number of the report.
    pub(crate) fn silent_nodes_from(
        &self,
        grace_ms: u64,
        from: Option<(u64, u64)>,
    ) -> impl Iterator<Item = ((u64, u64), &NodeReport)> {
        let (from_ms, from_id) = from.unwrap_or_default();
        let until = self.log_time_ms().checked_sub(grace_ms).filter(|until| from_ms < *until);
        let range = move |until| self.index.heard.range((from_ms, Id::new(from_id))..(until, Id::MIN));
        let heard = until.into_iter().flat_map(range);
        heard.map(|(heard_ms, id)| ((*heard_ms, id.get()), self.reports.named(*id)))
    }

    /// Returns true if the agent of a node can probe an address, according to its report.
    pub(crate) fn is_on_link(&self, node: &NodeKey, network: &Name, address: IpAddr) -> bool {
        let links = self.report_of(node).into_iter().flat_map(|(_, report)| &report.links);
        links.filter(|link| link.network == *network).any(|link| link.cidr.contains(&address))
    }

    /// Nodes on the link of a subnet whose agents were heard recently.
    pub(crate) fn nodes_on_link_of(&self, subnet: &Subnet) -> impl Iterator<Item = &NodeKey> {
        let cidr = subnet.spec.cidr;
        let lengths = 0..=cidr.prefix_len();
        let wider =
            lengths.filter_map(move |length| IpNet::new(cidr.addr(), length).ok()).map(|net| net.trunc());
        let of_link = |link| self.index.links.get(&(subnet.spec.network.clone(), link));
        let all = wider.filter_map(of_link).flat_map(TreeSet::iter);
        all.filter(|node| !self.is_silent(node, PROBER_SILENCE_MS_MAX))
    }

    /// Returns true if the agent of a node probes a subnet in a term of the log time. Each term selects other
    /// agents, so that no subnet stays with a broken agent.
    pub(crate) fn is_prober(&self, node: &NodeKey, (id, subnet): (SubnetId, &Subnet), term: u64) -> bool {
        let rank = |node: &NodeKey| {
            let seed = xxh3_64_with_seed(node.name.as_str().as_bytes(), term ^ id.get());
            xxh3_64_with_seed(node.realm.as_str().as_bytes(), seed)
        };
        let own = (rank(node), node);
        let mut is_candidate = false;
        let mut better: Vec<&NodeKey> = Vec::with_capacity(PROBERS_PER_SUBNET);
        for other in self.nodes_on_link_of(subnet) {
            is_candidate |= other == node;
            if (rank(other), other) < own && !better.contains(&other) {
                better.push(other);
                // Most nodes are no probers; for them the search ends here.
                if better.len() >= PROBERS_PER_SUBNET {
                    return false;
                }
            }
        }
        is_candidate
    }

    /// Present term of probers.
    pub(crate) fn prober_term(&self) -> u64 {
        self.log_time_ms() / PROBER_TERM_MS
    }

    /// Returns true if the agent of a node probes a subnet now, or did in the term before.
    pub(crate) fn is_prober_lately(&self, node: &NodeKey, of: (SubnetId, &Subnet)) -> bool {
        let term = self.prober_term();
        self.is_prober(node, of, term) || self.is_prober(node, of, term.saturating_sub(1))
    }

    /// Subnets that are on the links of a node.
    pub(crate) fn subnets_on_links_of(&self, report: &NodeReport) -> Vec<(SubnetId, &Subnet)> {
        let mut all = Vec::new();
        for link in &report.links {
            let Some(network) = self.find::<Network>(&link.network) else { continue };
            let last = (network, Family::of(link.cidr.addr()), number(link.cidr.broadcast()));
            let from = self.subnets_from(network, Some(link.cidr.network()));
            let subnets = from.map(|id| (id, self.subnets.named(id)));
            all.extend(
                subnets
                    .take_while(|(_, row)| {
                        let cidr = row.spec.cidr;
                        (network, Family::of(cidr.addr()), number(cidr.network())) <= last
                    })
                    .filter(|(_, row)| link.cidr.contains(&row.spec.cidr))
                    .take(SUBNETS_PER_LINK_MAX),
            );
        }
        all.sort_unstable_by_key(|(id, _)| *id);
        all.dedup_by_key(|(id, _)| *id);
        all
    }
}
