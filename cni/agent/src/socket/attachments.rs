//! Attachments of the node, for the commands that remove the plugin.

use ipam_api::agent::{NodeAttachment, NodeAttachments};

use crate::journal::{Attachments, Entry};

/// Maximum number of attachments in an answer.
const NAMED: usize = 100;

/// All attachments that may hold addresses or have a DEL to deliver.
pub(crate) fn node_attachments(attachments: &Attachments) -> NodeAttachments {
    let total = u64::try_from(attachments.len()).unwrap_or(u64::MAX);
    NodeAttachments { total, attachments: attachments.iter().take(NAMED).map(named).collect() }
}

fn named(entry: &Entry) -> NodeAttachment {
    NodeAttachment {
        config: entry.key.config.clone(),
        container_id: entry.key.container_id.clone(),
        interface: entry.key.interface.clone(),
        endpoint: entry.endpoint.clone(),
        deleting: entry.is_deleting(),
    }
}
