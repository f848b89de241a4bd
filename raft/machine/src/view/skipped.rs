//! Default pools that an explanation skips, since they don't select the requester, counted by reason.

use crate::allocate::choosing::Choosing;
use crate::allocate::pick::Evaluated;
use crate::allocate::selectors::Requester;
use crate::state::id::PoolId;
use crate::state::key::SelectorKey;
use crate::state::row::Network;
use crate::value::cause::RejectReason;
use ipam_api::Family;
use ipam_api::limits::{SKIPPED_LOOKED_THROUGH_MAX, SKIPPED_NAMED_MAX};
use ipam_api::name::Name;
use std::collections::BTreeSet;

/// Default pools that are skipped for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The reason.
    pub why: RejectReason,
    /// The number of these pools.
    pub count: u64,
    /// Their names, the most specific pool first; the first of very many.
    pub pools: Vec<Name>,
}

impl Choosing<'_> {
    /// Default pools of a family that aren't listed, by reason, and true if there may be more.
    pub(crate) fn skipped(
        self,
        family: Family,
        requester: &Requester<'_>,
        listed: &[Evaluated<'_>],
    ) -> (Vec<Skipped>, bool) {
        let Some(network) = self.state.find::<Network>(&Name::default_name()) else {
            return (Vec::new(), false);
        };
        let mut keys = self.state.default_keys_from(network, family, SelectorKey::Any);
        let listed: BTreeSet<PoolId> = listed.iter().map(|(candidate, _)| candidate.id).collect();
        let others = keys.by_ref().take(SKIPPED_LOOKED_THROUGH_MAX).filter(|(.., id)| !listed.contains(id));
        // In the order in which they would be tried, each once.
        let others: BTreeSet<_> = others.map(|(_, _, _, rank, name, id)| (rank, name, *id)).collect();
        let (mut all, mut named): (Vec<Skipped>, usize) = (Vec::new(), 0);
        for candidate in others.into_iter().filter_map(|(.., id)| self.candidate(id)) {
            let Some(why) = self.reject_reason(&candidate, requester) else { continue };
            let name = candidate.pool.spec.name.clone();
            match all.iter_mut().find(|one| one.why == why) {
                None => all.push(Skipped { why, count: 1, pools: vec![name] }),
                Some(one) => {
                    one.count += 1;
                    if named < SKIPPED_NAMED_MAX {
                        named += 1;
                        one.pools.push(name);
                    }
                }
            }
        }
        (all, keys.next().is_some())
    }
}
