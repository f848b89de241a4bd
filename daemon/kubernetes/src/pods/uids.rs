//! Uids of the pods that the API server shows, in little memory.

use std::collections::BTreeSet;

use uuid::Uuid;

/// Uids of pods.
#[derive(Debug, Default)]
pub(crate) struct Uids {
    known: BTreeSet<Uid>,
    listing: Option<BTreeSet<Uid>>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Uid {
    Uuid([u8; 16]),
    Other(Box<str>),
}

impl Uid {
    pub(crate) fn new(text: &str) -> Self {
        match Uuid::parse_str(text) {
            // Different spellings of a UUID are different uids.
            Ok(uuid) if uuid.as_hyphenated().encode_lower(&mut Uuid::encode_buffer()) == text => {
                Self::Uuid(uuid.into_bytes())
            }
            _ => Self::Other(text.into()),
        }
    }
}

impl Uids {
    /// Begins a list, which replaces the uids at its end.
    pub(crate) fn begin(&mut self) {
        self.listing = Some(BTreeSet::new());
    }

    /// Adds a uid, to the list if one is under way.
    pub(crate) fn insert(&mut self, uid: &str) {
        self.listing.as_mut().unwrap_or(&mut self.known).insert(Uid::new(uid));
    }

    /// Ends a list. Returns true if it lacks a uid that was known before.
    pub(crate) fn end(&mut self) -> bool {
        let listed = self.listing.take().unwrap_or_default();
        let lacks = !self.known.is_subset(&listed);
        self.known = listed;
        lacks
    }

    pub(crate) fn remove(&mut self, uid: &str) {
        self.known.remove(&Uid::new(uid));
    }

    pub(crate) fn contains(&self, uid: &str) -> bool {
        self.known.contains(&Uid::new(uid))
    }

    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uids_of_any_form_are_told_apart() {
        let mut uids = Uids::default();
        let uuid = "0d2cbb7e-2f9c-4ef5-a6d7-6d3d5a9b2c10";
        for uid in [uuid, "0d2cbb7e2f9c4ef5a6d76d3d5a9b2c10", "h1"] {
            assert!(!uids.contains(uid), "{uid}");
            uids.insert(uid);
            assert!(uids.contains(uid), "{uid}");
        }
        assert!(!uids.contains(&uuid.to_uppercase()));
        assert_eq!(uids.len(), 3);
        assert_eq!(size_of::<Uid>(), 24);
    }

    #[test]
    fn a_list_replaces_the_uids() {
        let mut uids = Uids::default();
        uids.insert("a");
        uids.begin();
        uids.insert("b");
        assert!(uids.contains("a") && !uids.contains("b"), "the list is not complete");
        assert!(uids.end());
        assert!(!uids.contains("a") && uids.contains("b"));
        uids.begin();
        uids.insert("b");
        uids.insert("c");
        assert!(!uids.end(), "nothing is missing");
        uids.remove("b");
        assert_eq!(uids.len(), 1);
    }
}
