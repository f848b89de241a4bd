//! Lists of prefixes: exactly these owners of a realm have prefixes directly below a pool or a prefix.
//!
//! Listed prefixes are delegated or wait; all others are released or withdrawn. Additions come first, so that
//! a new owner gets a block that is already free, and not the block of a removed owner.

use crate::apply::step::Step;
use crate::command::{Answer, Cause, Delegate, ListedPrefix, Refusal, SetPrefixes, UnlistedPrefix};
use crate::prefix::delegate::no_prefix;
use crate::state::State;
use crate::state::id::{ParentId, PrefixClaimId, PrefixId};
use crate::state::row::PrefixOwner;
use ipam_api::limits::{EXPIRIES_PER_COMMAND_MAX, PREFIXES_UNLISTED_MAX, RESPONSE_BYTES_MAX};
use ipam_api::name::{Name, ObjectName};
use postcard::experimental::serialized_size;
use std::collections::BTreeSet;

impl Step<'_> {
    /// Delegates or queues the listed prefixes, and ends all others. On a draft: a refusal may come late.
    pub(crate) fn change_prefixes(&mut self, request: &SetPrefixes) -> Result<Ended, Refusal> {
        let (source, _) = self.state.open_source(&request.from, self.search()?)?;
        for level in &request.prefixes {
            self.work.take(1);
            self.work.check()?;
            let (from, realm) = (request.from.clone(), request.realm.clone());
            self.delegate_listed(Delegate { from, realm, levels: vec![level.clone()] }, source)?;
        }
        let unlisted = self.unlisted(source, request)?;
        self.end_unlisted(source, unlisted)
    }

    /// Answers with the listed prefixes as they are once waiting requests have been served.
    pub(crate) fn prefixes_set(&self, request: &SetPrefixes, ended: Ended) -> Result<Answer, Refusal> {
        let Ended { source, released, ending } = ended;
        let mut prefixes = Vec::with_capacity(request.prefixes.len());
        for level in &request.prefixes {
            // The pool no longer exists if it was drained and the last of its prefixes was not listed.
            let prefix = self.state.listed_prefix(source, &request.realm, &level.owner);
            prefixes.push(prefix.ok_or(Cause::PoolGone)?);
        }
        let answer = Answer::PrefixesSet { prefixes, released, ending };
        // `serialized_size` doesn't fail for a value that postcard encodes.
        let bytes = serialized_size(&answer).unwrap_or(RESPONSE_BYTES_MAX + 1);
        if bytes > RESPONSE_BYTES_MAX {
            return Err(Cause::PrefixListSize { bytes: bytes as u64 }.into());
        }
        Ok(answer)
    }

    /// Finds the prefixes and waiting requests that a list leaves out.
    fn unlisted(&self, source: ParentId, request: &SetPrefixes) -> Result<Unlisted, Refusal> {
        let listed: BTreeSet<&ObjectName> = request.prefixes.iter().map(|level| &level.owner).collect();
        let mut unlisted = Unlisted::default();
        for (id, row) in self.state.prefixes_of_realm(source, &request.realm) {
            self.work.take(1);
            // A prefix that was released before is only waiting for its deletion.
            unlisted.ending |= row.released;
            if !row.released && !listed.contains(&row.owner.name) {
                unlisted.prefixes.push(id);
            }
            unlisted.check(self)?;
        }
        for (id, owners) in self.state.prefix_claims_of_realm(source, &request.realm) {
            self.work.take(1);
            // A request for several levels would delegate the first one again.
            if owners.first().is_some_and(|owner| !listed.contains(owner)) {
                unlisted.claims.push(id);
            }
            unlisted.check(self)?;
        }
        Ok(unlisted)
    }

    /// Ends the prefixes and waiting requests that a list leaves out.
    fn end_unlisted(&mut self, source: ParentId, unlisted: Unlisted) -> Result<Ended, Refusal> {
        let Unlisted { prefixes, claims, mut ending } = unlisted;
        let mut released = Vec::with_capacity(prefixes.len() + claims.len());
        // Claims end first: the end of the last prefix may delete the pool, and its claims with it.
        for id in claims {
            let owner = self.state.prefix_claims.named(id).owner.name.clone();
            self.withdraw_prefix_claim(id);
            released.push(UnlistedPrefix { id: id.get().into(), owner, cidr: None });
        }
        for id in &prefixes {
            let row = self.state.prefixes.get(*id).ok_or_else(|| no_prefix(*id))?.clone();
            released.push(UnlistedPrefix { id: *id, owner: row.owner.name.clone(), cidr: Some(row.cidr) });
            self.end_prefix(*id, row);
        }
        let mut left = EXPIRIES_PER_COMMAND_MAX;
        for id in prefixes {
            self.clear_prefix(id, &mut left);
            ending |= self.state.prefixes.get(id).is_some();
        }
        Ok(Ended { source, released, ending })
    }
}

/// Source of a list, and the prefixes and requests that the list has ended.
pub(crate) struct Ended {
    source: ParentId,
    released: Vec<UnlistedPrefix>,
    /// True if the end continues with later commands.
    ending: bool,
}

/// Prefixes and waiting requests that a list leaves out.
#[derive(Default)]
struct Unlisted {
    prefixes: Vec<PrefixId>,
    claims: Vec<PrefixClaimId>,
    /// True if prefixes that were released before are still being deleted.
    ending: bool,
}

impl Unlisted {
    fn check(&self, step: &Step<'_>) -> Result<(), Refusal> {
        if self.prefixes.len() + self.claims.len() > PREFIXES_UNLISTED_MAX {
            return Err(Cause::TooManyUnlisted.into());
        }
        step.work.check()
    }
}

impl State {
    /// Prefix of a listed owner, or its request that waits.
    fn listed_prefix(&self, source: ParentId, realm: &Name, owner: &ObjectName) -> Option<ListedPrefix> {
        let prefix = self.prefix_of(source, &PrefixOwner { realm: realm.clone(), name: owner.clone() });
        if let Some((id, _)) = prefix.filter(|(id, _)| !self.has_ended(*id)) {
            return self.given_prefix(id).map(ListedPrefix::Delegated);
        }
        let claim = self.index.prefix_claims.get(&(source, realm.clone(), vec![owner.clone()]))?;
        self.pending_prefix(*claim).map(ListedPrefix::Waiting)
    }
}
