//! Sharing of names: equal names of many rows use the same memory.
//!
//! Commands and stored rows are decoded with memory for each name. A million rows name a few thousand nodes,
//! namespaces and principals, so that most of this memory would be copies.

use crate::tree::Tree;
use arcstr::ArcStr;
use ipam_api::name::SharedText;
use ipam_api::request::AttachmentKey;
use xxhash_rust::xxh3::xxh3_64;

/// Recently written names by a part of their hash.
///
/// The table isn't part of the rows' content, and it is bounded: a name replaces another one with the same
/// part. Rows with the replaced name keep sharing its memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedNames(Tree<u16, ArcStr>);

impl SharedNames {
    /// Replaces a name by an equal one that is shared already, or offers it for sharing.
    pub(crate) fn share(&mut self, name: &mut impl SharedText) {
        let [one, other, ..] = xxh3_64(name.text().as_bytes()).to_ne_bytes();
        let place = u16::from_ne_bytes([one, other]);
        match self.0.get(&place) {
            Some(known) if known == name.text() => name.share(known),
            _ => drop(self.0.insert(place, ArcStr::clone(name.text()))),
        }
    }

    /// Shares the names of an attachment, except for the container id.
    pub(crate) fn share_attachment(&mut self, key: &mut AttachmentKey) {
        let AttachmentKey { realm, node, config, container_id: _, interface } = key;
        self.share(realm);
        self.share(node);
        self.share(config);
        self.share(interface);
    }

    /// Adds the names of another lane.
    pub(crate) fn take_in(&mut self, other: Self) {
        self.0.take_in(other.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipam_api::name::{Name, ObjectName};

    #[test]
    fn equal_names_share_memory_and_the_number_of_names_is_bounded() {
        let mut names = SharedNames::default();
        let (mut realm, mut node): (Name, ObjectName) = ("n1".parse().unwrap(), "n1".parse().unwrap());
        names.share(&mut realm);
        names.share(&mut node);
        assert!(ArcStr::ptr_eq(realm.text(), node.text()));
        for number in 0..200_000 {
            let mut name: ObjectName = format!("n{number}").parse().unwrap();
            names.share(&mut name);
            assert_eq!(name.as_str(), format!("n{number}"));
        }
        assert!(names.0.len() <= 1 << 16);
    }
}
