//! Pools by selector and by name: the order in which requests find them.

use crate::command::{PoolSelectors, PoolSpec, Text};
use crate::state::State;
use crate::state::id::{Id, NetworkId, PoolId};
use crate::state::index::{DefaultKey, Index};
use crate::state::key::{MOST_SPECIFIC, Rank, SelectorKey};
use crate::state::row::Subnet;
use ipam_api::name::{Name, ResourceName};
use ipam_api::{Family, Selector};
use std::cmp::Reverse;

fn key(pool: &PoolSpec, subnet: &Subnet) -> (Family, Rank, ResourceName) {
    (Family::of(subnet.spec.cidr.addr()), pool.selectors.rank(), (&pool.name).into())
}

impl Index {
    /// Adds a pool to the index of ranks and names.
    pub(crate) fn name_pool(&mut self, id: PoolId, pool: &PoolSpec, subnet: &Subnet) {
        self.pool_names.insert(key(pool, subnet), id);
    }

    /// Removes a pool from the index of ranks and names.
    pub(crate) fn unname_pool(&mut self, pool: &PoolSpec, subnet: &Subnet) {
        self.pool_names.remove(&key(pool, subnet));
    }
}

impl PoolSelectors {
    /// Index keys of a pool: those of the one selector that most likely distinguishes it from others.
    pub(crate) fn selector_keys(&self) -> Vec<SelectorKey> {
        let labels = |selector: &Selector, of: fn(Text, Text) -> SelectorKey| {
            let (key, values) = selector.telling()?;
            let label = |value: &String| of(Text::identifier(key), Text::identifier(value.as_str()));
            Some(values.iter().map(label).collect::<Vec<SelectorKey>>())
        };
        if let Some(selector_keys) = labels(&self.endpoint_selector, SelectorKey::Label) {
            return selector_keys;
        }
        if !self.node_names.is_empty() {
            return self.node_names.iter().cloned().map(SelectorKey::Node).collect();
        }
        if let Some(selector_keys) = labels(&self.node_selector, SelectorKey::NodeLabel) {
            return selector_keys;
        }
        if !self.namespaces.is_empty() {
            return self.namespaces.iter().cloned().map(SelectorKey::Namespace).collect();
        }
        if let Some(selector_keys) = labels(&self.namespace_selector, SelectorKey::NamespaceLabel) {
            return selector_keys;
        }
        if !self.network_attachments.is_empty() {
            return self.network_attachments.iter().cloned().map(SelectorKey::Attachment).collect();
        }
        if !self.realms.is_empty() {
            return self.realms.iter().cloned().map(SelectorKey::Realm).collect();
        }
        vec![SelectorKey::Any]
    }

    /// Rank by the kinds of requirements, not by their number.
    pub(crate) fn rank(&self) -> Rank {
        [
            !self.endpoint_selector.is_empty(),
            !self.node_names.is_empty(),
            self.node_names.is_empty() && !self.node_selector.is_empty(),
            !self.namespaces.is_empty(),
            self.namespaces.is_empty() && !self.namespace_selector.is_empty(),
            !self.network_attachments.is_empty(),
            !self.realms.is_empty(),
        ]
        .map(Reverse)
    }
}

impl State {
    /// Keys of default pools, from one selector key on.
    pub(crate) fn default_keys_from(
        &self,
        network: NetworkId,
        family: Family,
        selector_key: SelectorKey,
    ) -> impl Iterator<Item = &DefaultKey> {
        let from = (network, family, selector_key, MOST_SPECIFIC, Name::lowest(), Id::MIN);
        let keys = self.index.default_pools.range(from..);
        keys.take_while(move |(of, in_family, ..)| (*of, *in_family) == (network, family))
    }
}
