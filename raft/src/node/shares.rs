//! Bound of the proposals that wait at a member, shared out between requesters.
//!
//! A principal may hold as many places as are still free, and a namespace as many as its principal leaves
//! free in turn. So one requester alone gets a third of the places, and several get less each. A place always
//! remains for a requester that has none.

use std::collections::BTreeMap;
use std::sync::Mutex;

use ipam_machine::Action;
use ipam_machine::command::Text;

use super::requester::{NamespaceKey, Requester, weight};
use crate::sync::held;

/// Size of proposals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) weight: usize,
    pub(super) bytes: usize,
}

impl Size {
    /// Size of a command with these encoded bytes.
    pub(super) fn of(action: &Action, bytes: usize) -> Self {
        Self { weight: weight(action, bytes), bytes }
    }

    fn add(&mut self, more: Self) {
        self.weight += more.weight;
        self.bytes += more.bytes;
    }

    fn subtract(&mut self, less: Self) {
        self.weight = self.weight.saturating_sub(less.weight);
        self.bytes = self.bytes.saturating_sub(less.bytes);
    }
}

#[derive(Debug, Default)]
struct Held {
    all: Size,
    principals: BTreeMap<Text, OfPrincipal>,
}

#[derive(Debug, Default)]
struct OfPrincipal {
    all: Size,
    namespaces: BTreeMap<Option<NamespaceKey>, Size>,
}

/// Places for proposals.
#[derive(Debug)]
pub(super) struct Shares {
    limit: Size,
    held: Mutex<Held>,
}

/// Places of one proposal, for the lifetime of this value.
#[derive(Debug)]
pub(super) struct Share<'a> {
    shares: &'a Shares,
    requester: Requester,
    size: Size,
}

/// Refusal of a requester that holds its share already.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Exhausted;

impl Shares {
    /// Creates places for proposals of this total size.
    pub(super) fn new(limit: Size) -> Self {
        Self { limit, held: Mutex::default() }
    }

    /// Takes places, unless the requester holds its share.
    pub(super) fn take(&self, requester: &Requester, size: Size) -> Result<Share<'_>, Exhausted> {
        let mut held = held(&self.held);
        let mine = held.principals.get(&requester.principal);
        let of_principal = mine.map_or_else(Size::default, |mine| mine.all);
        let of_namespace =
            mine.and_then(|mine| mine.namespaces.get(&requester.namespace)).copied().unwrap_or_default();
        let all = held.all;
        let fits = |part: fn(Size) -> usize| {
            part(of_namespace) + part(size) + part(of_principal) + part(all) <= part(self.limit)
        };
        // The largest command fits into an empty queue.
        if all != Size::default() && !(fits(|size| size.weight) && fits(|size| size.bytes)) {
            return Err(Exhausted);
        }
        held.all.add(size);
        let mine = held.principals.entry(requester.principal.clone()).or_default();
        mine.all.add(size);
        mine.namespaces.entry(requester.namespace.clone()).or_default().add(size);
        Ok(Share { shares: self, requester: requester.clone(), size })
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        let mut held = held(&self.shares.held);
        held.all.subtract(self.size);
        let Some(mine) = held.principals.get_mut(&self.requester.principal) else { return };
        mine.all.subtract(self.size);
        if let Some(namespace) = mine.namespaces.get_mut(&self.requester.namespace) {
            namespace.subtract(self.size);
            if *namespace == Size::default() {
                mine.namespaces.remove(&self.requester.namespace);
            }
        }
        if mine.namespaces.is_empty() {
            held.principals.remove(&self.requester.principal);
        }
    }
}

#[cfg(test)]
mod tests {
    use ipam_api::name::{Name, ObjectName};

    use super::*;

    const LIMIT: Size = Size { weight: 900, bytes: 90_000 };
    const ONE: Size = Size { weight: 1, bytes: 1 };

    fn requester(principal: &str, namespace: Option<&str>) -> Requester {
        let realm = Name::default_name();
        let namespace = namespace.map(|name| (realm, ObjectName::new(name).unwrap()));
        Requester { principal: Text::given(principal), namespace }
    }

    /// Takes as many places as the requester gets.
    fn flood<'a>(shares: &'a Shares, requester: &Requester) -> Vec<Share<'a>> {
        std::iter::from_fn(|| shares.take(requester, ONE).ok()).collect()
    }

    #[test]
    fn a_flood_gets_a_third_and_leaves_places_to_others() {
        let shares = Shares::new(LIMIT);
        let flooding = requester("node/a", Some("web"));
        let flood = flood(&shares, &flooding);
        assert_eq!(flood.len(), 300);
        assert_eq!(shares.take(&flooding, ONE).unwrap_err(), Exhausted);
        shares.take(&requester("node/a", Some("db")), ONE).unwrap();
        shares.take(&requester("node/b", Some("web")), ONE).unwrap();
        drop(flood);
        assert!(
            held(&shares.held).principals.is_empty(),
            "nothing is remembered of requesters without places"
        );
    }

    #[test]
    fn a_newcomer_finds_a_place_beside_many_floods() {
        let shares = Shares::new(LIMIT);
        let mut held = Vec::new();
        for number in 0..40 {
            held.push(flood(
                &shares,
                &requester(&format!("node/{}", number / 8), Some(&format!("n{number}"))),
            ));
        }
        // Again, until none of them gets more.
        for number in 0..40 {
            held.push(flood(
                &shares,
                &requester(&format!("node/{}", number / 8), Some(&format!("n{number}"))),
            ));
        }
        assert!(shares.take(&requester("node/quiet", None), ONE).is_ok());
    }

    #[test]
    fn bytes_are_shared_like_weight_and_the_largest_command_fits_alone() {
        let shares = Shares::new(LIMIT);
        let huge = Size { weight: 1, bytes: 2 * LIMIT.bytes };
        let alone = shares.take(&requester("a", None), huge).unwrap();
        assert!(shares.take(&requester("b", None), ONE).is_err());
        drop(alone);
        let large = Size { weight: 1, bytes: LIMIT.bytes / 3 };
        let _one = shares.take(&requester("a", None), large).unwrap();
        assert!(shares.take(&requester("a", None), large).is_err());
        assert!(shares.take(&requester("b", None), large).is_ok());
    }
}
