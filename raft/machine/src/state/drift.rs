//! Comparison of the index with the one that the rows say: nothing of it may outlive them.

use crate::state::State;
use crate::state::index::Index;

macro_rules! parts {
    ($($part:ident)*) => {
        impl State {
            /// Names of the parts of the index that are otherwise in another state. One of the same rows has none.
            #[must_use]
            pub fn index_differences(&self, other: &State) -> Vec<&'static str> {
                let Index { $($part),* } = &self.index;
                [$((stringify!($part), *$part == other.index.$part)),*]
                    .into_iter()
                    .filter_map(|(part, is_same)| (!is_same).then_some(part))
                    .collect()
            }
        }
    };
}

parts! {
    names pool_names subnet_starts pools_of_subnet applications automatic_of_node
    owners spare excluding gateways reserved default_pools
    spaces occupants endpoints controllers attachments tombstones
    tombstones_of_node tombstone_counts boots usage resting cooling_until
    waiting waiting_for head_of heads had lease_ends
    token_secrets token_ends node_tokens replays replays_of replay_usage
    replay_bytes_of replay_bytes blocks prefix_owners prefix_until divided
}
