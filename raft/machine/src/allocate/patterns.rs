//! Pools by pattern: the pools of a family that match names with wildcards, in the order of candidates.
//!
//! Matches are found lazily by an index of rank and name, so a request pays for the pools that it examines
//! and not for all matches.

use crate::allocate::choosing::Choosing;
use crate::state::id::PoolId;
use crate::state::key::{MOST_SPECIFIC, Rank};
use ipam_api::Family;
use ipam_api::name::{NamePattern, ResourceName};
use std::collections::BTreeSet;
use std::iter;

impl<'a> Choosing<'a> {
    /// The ranks that pools of a family have, the most specific first.
    fn ranks(self, family: Family) -> impl Iterator<Item = Rank> + 'a {
        let first_from = move |key: (Family, Rank, ResourceName)| {
            let next = self.state.index.pool_names.range(key..).next();
            next.map(|((of, rank, _), _)| (*of, *rank)).filter(|(of, _)| *of == family).map(|(_, rank)| rank)
        };
        // `~` sorts after every character of a name.
        let behind = move |rank: Rank| (family, rank, ResourceName::lowest_beginning("~"));
        let first = first_from((family, MOST_SPECIFIC, ResourceName::lowest_beginning("")));
        iter::successors(first, move |rank| first_from(behind(*rank)))
    }

    /// The pools of a family and a rank that match a pattern, by name.
    fn pools_like(
        self,
        family: Family,
        rank: Rank,
        pattern: NamePattern,
    ) -> impl Iterator<Item = PoolId> + 'a {
        let from = (family, rank, ResourceName::lowest_beginning(pattern.prefix()));
        let near = self.state.index.pool_names.range(from..).map_while(move |((of, at, name), id)| {
            let is_near = (*of, *at) == (family, rank) && name.as_str().starts_with(pattern.prefix());
            (is_near && self.work.take_name(&pattern, name)).then(|| pattern.fits(name).then_some(*id))
        });
        near.flatten()
    }

    /// Returns true if the pattern matches any pool of a family.
    pub(super) fn is_like_any(self, family: Family, pattern: &NamePattern) -> bool {
        self.ranks(family).any(|rank| self.pools_like(family, rank, pattern.clone()).next().is_some())
    }

    /// Pools of a family that match the patterns, each once. The most specific come first, then the order of
    /// the patterns, then the name.
    pub(super) fn pools_like_any(
        self,
        family: Family,
        patterns: &[NamePattern],
    ) -> impl Iterator<Item = PoolId> + use<'a> {
        let patterns = patterns.to_vec();
        let mut seen = BTreeSet::new();
        let of_rank = move |rank: Rank| {
            let patterns = patterns.clone().into_iter();
            patterns.flat_map(move |pattern| self.pools_like(family, rank, pattern))
        };
        self.ranks(family).flat_map(of_rank).filter(move |id| seen.insert(*id))
    }
}
