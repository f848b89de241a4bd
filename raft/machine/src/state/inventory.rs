//! Inventories of nodes: the attachments of each, with the digest that its agent compares.

use crate::state::State;
use crate::state::id::{AttachmentId, Id};
use crate::state::index::Part;
use crate::state::indexed::Change;
use crate::state::row::Attachment;
use crate::tree::{Tree, TreeSet};
use ipam_api::access::NodeKey;
use ipam_api::node_report::Inventory;
use std::ops::Bound;

/// Inventories by node; none is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Inventories(Tree<NodeKey, OfNode>);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct OfNode {
    attachments: TreeSet<AttachmentId>,
    inventory: Inventory,
}

impl Part for Inventories {
    fn take_in(&mut self, other: Self) {
        self.0.take_in(other.0);
    }
}

impl Inventories {
    pub(crate) fn change(&mut self, node: NodeKey, id: AttachmentId, row: &Attachment, change: Change) {
        let has_none = self.0.change(node.clone(), |of_node| {
            change.in_set(&mut of_node.attachments, id);
            let allocations = row.allocations.iter().map(|id| id.get());
            match change {
                Change::Enter => of_node.inventory.add(&row.key, allocations),
                Change::Leave => of_node.inventory.remove(&row.key, allocations),
            }
            of_node.attachments.is_empty()
        });
        if has_none {
            self.0.remove(&node);
        }
    }
}

impl State {
    /// Count and digest of a node's attachments.
    #[must_use]
    pub fn inventory(&self, node: &NodeKey) -> Inventory {
        self.index.inventories.0.get(node).map_or_else(Inventory::default, |of_node| of_node.inventory)
    }

    /// Attachments of a node after one of them, oldest first.
    pub fn attachments_on(
        &self,
        node: &NodeKey,
        after: Option<AttachmentId>,
    ) -> impl Iterator<Item = (AttachmentId, &Attachment)> {
        let after = after.unwrap_or(Id::MIN);
        let of_node = self.index.inventories.0.get(node).into_iter();
        let ids = of_node
            .flat_map(move |of_node| of_node.attachments.range((Bound::Excluded(after), Bound::Unbounded)));
        ids.map(|id| (*id, self.attachments.named(*id)))
    }
}
