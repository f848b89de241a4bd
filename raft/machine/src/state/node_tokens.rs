//! Tokens by the node that they speak for.

use imbl::OrdSet;
use ipam_api::access::NodeKey;

use crate::value::Purpose;
use crate::value::id::TokenId;
use crate::value::row::Token;

/// Tokens that speak for a node, by the node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NodeTokens(OrdSet<(NodeKey, TokenId)>);

impl NodeTokens {
    pub(crate) fn insert(&mut self, row: &Token) {
        self.0.extend(key(row));
    }

    pub(crate) fn remove(&mut self, row: &Token) {
        if let Some(key) = key(row) {
            self.0.remove(&key);
        }
    }

    pub(crate) fn take_in(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The tokens of a node, the oldest first.
    pub(crate) fn of(&self, node: &NodeKey) -> Vec<TokenId> {
        let all = self.0.range((node.clone(), TokenId::MIN)..=(node.clone(), TokenId::MAX));
        all.map(|(_, id)| *id).collect()
    }
}

fn key(row: &Token) -> Option<(NodeKey, TokenId)> {
    let node = row.grant.node.as_ref().filter(|_| row.purpose == Purpose::Bearer)?;
    Some((node.clone(), TokenId::new(row.meta.id)))
}
