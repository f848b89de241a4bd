//! Attachments by their key, which is only looked up and never listed in order.

use crate::tree::TreeSet;
use ipam_api::request::AttachmentKey;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::state::id::Id;
use crate::state::index::Part;
use crate::state::indexed::Change;

/// Ids of rows by a hash of their attachment's key.
///
/// A key is five names, each in its own memory: a search among a million keys would fetch several in every
/// step. So the hash is compared, and the caller verifies the key in the row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ByAttachment<T>(TreeSet<(u64, Id<T>)>);

impl<T> Default for ByAttachment<T> {
    fn default() -> Self {
        Self(TreeSet::default())
    }
}

impl<T> Part for ByAttachment<T> {
    fn take_in(&mut self, other: Self) {
        self.0.take_in(other.0);
    }
}

impl<T> ByAttachment<T> {
    fn hash(key: &AttachmentKey) -> u64 {
        let AttachmentKey { realm, node, config, container_id, interface } = key;
        let names =
            [realm.as_str(), node.as_str(), config.as_str(), container_id.as_str(), interface.as_str()];
        names.iter().fold(0, |hash, name| xxh3_64_with_seed(name.as_bytes(), hash))
    }

    pub(crate) fn change(&mut self, key: &AttachmentKey, id: Id<T>, change: Change) {
        change.in_set(&mut self.0, (Self::hash(key), id));
    }

    /// Returns the row whose key, according to `key_of`, equals `key`.
    pub(crate) fn find<'a>(
        &self,
        key: &AttachmentKey,
        key_of: impl Fn(Id<T>) -> Option<&'a AttachmentKey>,
    ) -> Option<Id<T>> {
        let hash = Self::hash(key);
        let same_hash = self.0.range((hash, Id::MIN)..=(hash, Id::MAX)).map(|(_, id)| *id);
        same_hash.into_iter().find(|id| key_of(*id) == Some(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attachments_with_equal_hashes_are_distinguished_by_their_rows() {
        let key = |interface: &str| AttachmentKey {
            realm: ipam_api::Name::default_name(),
            node: "n1".parse().unwrap(),
            config: "net".parse().unwrap(),
            container_id: "c1".parse().unwrap(),
            interface: interface.parse().unwrap(),
        };
        let (mine, other) = (key("eth0"), key("eth1"));
        let mut index = ByAttachment::default();
        // Simulates a hash collision: only the rows distinguish the two attachments.
        index.change(&mine, Id::new(1), Change::Enter);
        index.change(&mine, Id::new(2), Change::Enter);
        let key_of = |id: Id<()>| Some(if id.get() == 1 { &other } else { &mine });
        assert_eq!(index.find(&mine, key_of), Some(Id::new(2)));
        assert_eq!(index.find(&mine, |_| Some(&other)), None);
        index.change(&mine, Id::new(2), Change::Leave);
        assert_eq!((index.find(&mine, key_of), index.0.len()), (None, 1));
        assert_eq!(index.find(&other, key_of), None);
    }
}
