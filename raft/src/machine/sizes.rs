//! How much is derived from the rows: nothing of it may outlive them.

use super::state::State;

impl State {
    /// Entries of each part of the index. A state rebuilt from the same rows has the same.
    #[must_use]
    pub fn index_sizes(&self) -> Vec<(&'static str, usize)> {
        let index = &self.index;
        vec![
            ("names", index.names.len()),
            ("names of pools by rank", index.pool_names.len()),
            ("subnet starts", index.subnet_starts.len()),
            ("pools of subnets", index.pools_of_subnet.len()),
            ("pools of applications", index.applications.len()),
            ("owners", index.owners.len()),
            ("subnets with spare addresses", index.spare.len()),
            ("pools that exclude", index.excluding.len()),
            ("gateways of pools", index.gateways.len()),
            ("reserved", index.reserved.len()),
            ("default pools", index.default_pools.len()),
            ("spaces", index.spaces.len()),
            ("resting addresses of pools", index.spaces.values().map(|space| space.cooling.len()).sum()),
            ("occupants", index.occupants.len()),
            ("endpoints", index.endpoints.len()),
            ("endpoints of controllers", index.controllers.len()),
            ("attachments", index.attachments.len()),
            ("tombstones", index.tombstones.len()),
            ("tombstones of nodes", index.tombstones_of_node.len()),
            ("nodes with tombstones", index.tombstone_counts.len()),
            ("boots", index.boots.len()),
            ("resting addresses", index.resting.len()),
            ("coolings by time", index.cooling_until.len()),
            ("waiting claims", index.waiting.len()),
            ("waiting claims of pools", index.waiting_for.len()),
            ("pools that could help", index.head_of.len()),
            ("pools by whom they could help", index.heads.len()),
            ("namespaces and applications with addresses", index.had.len()),
            ("leases by their end", index.lease_ends.len()),
            ("secrets of tokens", index.token_secrets.len()),
            ("tokens by their end", index.token_ends.len()),
            ("kept answers", index.replays.len()),
            ("kept answers of principals", index.replays_of.len()),
            ("principals with kept answers", index.replay_usage.len()),
            ("principals by bytes of kept answers", index.replay_bytes_of.len()),
            ("bytes of kept answers", usize::try_from(index.replay_bytes).unwrap_or(usize::MAX)),
            ("blocks of prefixes", index.blocks.len()),
            ("owners of prefixes", index.prefix_owners.len()),
            ("prefixes by time", index.prefix_until.len()),
            ("divided prefixes", index.divided.len()),
        ]
    }
}
