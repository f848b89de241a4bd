//! Attachments by their key, which is only ever looked up and never listed in order.

use imbl::OrdSet;
use ipam_api::request::AttachmentKey;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::index::join_sets;

/// Ids of rows by a hash of their attachment's key.
///
/// A key is five names, each in a place of its own in memory: among a million of them every step of a search
/// would fetch several. The hash decides; whoever asks looks into the row to be sure.
#[derive(Debug, Clone, Default)]
pub(super) struct ByAttachment(OrdSet<(u64, u64)>);

impl ByAttachment {
    fn hash(key: &AttachmentKey) -> u64 {
        let AttachmentKey { realm, node, config, container_id, interface } = key;
        let names =
            [realm.as_str(), node.as_str(), config.as_str(), container_id.as_str(), interface.as_str()];
        names.iter().fold(0, |hash, name| xxh3_64_with_seed(name.as_bytes(), hash))
    }

    pub(super) fn insert(&mut self, key: &AttachmentKey, id: u64) {
        self.0.insert((Self::hash(key), id));
    }

    pub(super) fn remove(&mut self, key: &AttachmentKey, id: u64) {
        self.0.remove(&(Self::hash(key), id));
    }

    /// Takes in those of another table.
    pub(super) fn take_in(&mut self, other: Self) {
        join_sets(&mut self.0, other.0);
    }

    /// The row that `key_of` says has this key.
    pub(super) fn find<'a>(
        &self,
        key: &AttachmentKey,
        key_of: impl Fn(u64) -> Option<&'a AttachmentKey>,
    ) -> Option<u64> {
        let hash = Self::hash(key);
        let same_hash = self.0.range((hash, 0)..=(hash, u64::MAX)).map(|(_, id)| *id);
        same_hash.into_iter().find(|id| key_of(*id) == Some(key))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_the_same_hash_is_told_apart_by_its_row() {
        let key = |interface: &str| AttachmentKey {
            realm: ipam_api::Name::default_name(),
            node: "n1".parse().unwrap(),
            config: "net".parse().unwrap(),
            container_id: "c1".parse().unwrap(),
            interface: interface.parse().unwrap(),
        };
        let (mine, other) = (key("eth0"), key("eth1"));
        let mut index = ByAttachment::default();
        // As if both had one hash: it is only known which by the rows.
        index.insert(&mine, 1);
        index.insert(&mine, 2);
        let key_of = |id| Some(if id == 1 { &other } else { &mine });
        assert_eq!(index.find(&mine, key_of), Some(2));
        assert_eq!(index.find(&mine, |_| Some(&other)), None);
        index.remove(&mine, 2);
        assert_eq!((index.find(&mine, key_of), index.len()), (None, 1));
        assert_eq!(index.find(&other, key_of), None);
    }
}
