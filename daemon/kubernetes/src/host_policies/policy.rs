//! Part of a host policy that its roll-out depends on.

use std::collections::BTreeSet;

use ipam_api::Selector;
use ipam_api::host_policy::{HostPolicy, MaxUnavailable, pool_of};
use ipam_api::name::Name;
use ipam_api::resource::Labels;
use serde_json::json;

use super::digest::digest;

/// Part of a host policy that its roll-out depends on.
#[derive(Debug, Clone)]
pub(crate) struct Policy {
    pub(crate) name: Name,
    selector: Selector,
    pub(crate) max_unavailable: MaxUnavailable,
    /// Digest of the template. A changed template configures all nodes anew.
    pub(crate) template: String,
    /// Pools of its addresses.
    pub(crate) pools: BTreeSet<Name>,
}

impl Policy {
    pub(crate) fn of(policy: &HostPolicy) -> Self {
        let HostPolicy { name, node_selector, interfaces, capture, desired_state, .. } = policy;
        let template = json!({"interfaces": interfaces, "capture": capture, "desired_state": desired_state});
        let listed = interfaces.iter().flat_map(|one| one.ipv4_pools.iter().chain(&one.ipv6_pools));
        let captured = capture.values().filter_map(|expression| pool_of(expression));
        Self {
            name: name.clone(),
            selector: node_selector.clone(),
            max_unavailable: policy.max_unavailable,
            template: digest(&template),
            pools: listed.cloned().chain(captured).collect(),
        }
    }

    /// True if the policy applies to a node with these labels.
    pub(crate) fn matches(&self, labels: &Labels) -> bool {
        self.selector.fits(|key| labels.get(key).map(String::as_str))
    }
}
