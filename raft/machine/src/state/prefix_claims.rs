//! Prefix claims in the state: by request, by source, and by the block that they need next.

use crate::command::{Cause, Delegate, PrefixSource};
use crate::space::free_set::FreeSet;
use crate::state::State;
use crate::state::division::Division;
use crate::state::id::{Id, ParentId, PoolId, PrefixClaimId};
use crate::state::key::{PrefixPath, Waiter};
use crate::state::row::{MissingBlock, NEVER_ROOM, Pool, PrefixClaim, PrefixOwner, WaitTarget};
use crate::value::condition::WaitReason;
use ipam_api::name::{Name, ObjectName};

impl PrefixClaim {
    /// Pool or prefix that the request names.
    pub(crate) fn source(&self) -> ParentId {
        match self.request.from {
            PrefixSource::Pool(_) => self.pool.into(),
            PrefixSource::Prefix(id) => id.into(),
        }
    }

    pub(crate) fn path(&self) -> PrefixPath {
        self.request.path_from(self.source())
    }
}

impl PrefixOwner {
    /// Key of a prefix or a claim of this owner in the index.
    pub(crate) fn key(&self, id: u64) -> (ObjectName, Name, u64) {
        (self.name.clone(), self.realm.clone(), id)
    }
}

impl Delegate {
    pub(crate) fn path_from(&self, source: ParentId) -> PrefixPath {
        let owners: Vec<ObjectName> = self.levels.iter().map(|level| level.owner.clone()).collect();
        (source, self.realm.clone(), owners)
    }
}

impl State {
    /// Source of a request and the pool at its root; none if the source doesn't exist.
    pub(crate) fn source_of(&self, from: &PrefixSource) -> Option<(ParentId, PoolId)> {
        match from {
            PrefixSource::Pool(name) => self.find::<Pool>(name).map(|id| (id.into(), id)),
            PrefixSource::Prefix(id) => self.prefixes.get(*id).map(|row| ((*id).into(), row.pool)),
        }
    }

    /// Claim of an earlier request for the same prefix.
    pub(crate) fn prefix_claim_for(
        &self,
        request: &Delegate,
        source: ParentId,
    ) -> Option<(PrefixClaimId, &PrefixClaim)> {
        let id = *self.index.prefix_claims.get(&request.path_from(source))?;
        Some((id, self.prefix_claims.named(id)))
    }

    /// Claims that name a pool or a prefix as their source, the oldest first.
    pub fn prefix_claims_from(&self, source: ParentId) -> impl Iterator<Item = PrefixClaimId> {
        self.index.claims_from.range((source, Id::MIN)..=(source, Id::MAX)).map(|(_, id)| *id)
    }

    /// Claims of one realm that name a pool or a prefix as their source, with the owners of their levels.
    pub(crate) fn prefix_claims_of_realm<'a>(
        &'a self,
        source: ParentId,
        realm: &'a Name,
    ) -> impl Iterator<Item = (PrefixClaimId, &'a [ObjectName])> + 'a {
        let behind = self.index.prefix_claims.range((source, realm.clone(), Vec::new())..);
        let own = behind.take_while(move |((of, at, _), _)| *of == source && at == realm);
        own.map(|((.., owners), id)| (*id, owners.as_slice()))
    }

    /// Ids of the prefixes and claims of an owner, in one realm or in all. Costs as much as it returns.
    pub fn prefixes_owned_by<'a>(
        &'a self,
        owner: &'a ObjectName,
        realm: Option<&'a Name>,
    ) -> impl Iterator<Item = u64> + 'a {
        let from = (owner.clone(), realm.cloned().unwrap_or_else(Name::lower_bound), 0);
        let behind = self.index.prefixes_owned.range(from..);
        let is_of = move |of: &Name| realm.is_none_or(|realm| realm == of);
        behind.take_while(move |(name, of, _)| name == owner && is_of(of)).map(|(.., id)| *id)
    }

    /// Claims that wait for a block of a parent, smallest need first.
    pub(crate) fn prefix_claims_for_block_of(&self, parent: ParentId) -> Vec<PrefixClaimId> {
        let waiters = self.waiters_for(&WaitTarget::Block(parent));
        let claims = waiters.filter_map(|waiter| match waiter {
            Waiter::Prefix(id) => Some(id),
            Waiter::Endpoint(_) => None,
        });
        claims.collect()
    }

    /// Claims that need this prefix next.
    pub(crate) fn prefix_claims_awaiting(&self, parent: ParentId, owner: &PrefixOwner) -> Vec<PrefixClaimId> {
        let (from, to) = ((parent, owner.clone(), Id::MIN), (parent, owner.clone(), Id::MAX));
        self.index.awaited_prefixes.range(from..=to).map(|(_, _, id)| *id).collect()
    }

    /// First level of a request that doesn't exist, as the block that it needs; none if all levels exist, or
    /// if that level has no length.
    pub(crate) fn next_missing(&self, request: &Delegate, (source, pool): (ParentId, PoolId)) -> Next {
        let mut parent = source;
        for level in &request.levels {
            let owner = PrefixOwner { realm: request.realm.clone(), name: level.owner.clone() };
            match (self.prefix_of(parent, &owner), level.length) {
                // The ended prefix is deleted first; the claim is then redirected to the block that becomes
                // free.
                (Some((id, _)), _) if self.has_ended(id) => {
                    let of = WaitTarget::Block(id.into());
                    return Next::Block(MissingBlock { of, need: NEVER_ROOM, owner });
                }
                (Some((id, _)), _) => parent = id.into(),
                (None, Some(length)) => {
                    let bits = self.space_of(pool).family.bits();
                    let need = match self.own_block(parent, &owner, length) {
                        Some(_) => OWN_BLOCK,
                        None => need_of(bits.saturating_sub(length)),
                    };
                    return Next::Block(MissingBlock { of: WaitTarget::Block(parent), need, owner });
                }
                (None, None) => return Next::Unspecified(owner),
            }
        }
        Next::Complete
    }

    /// Largest need of a block that a parent could meet now.
    pub(crate) fn room_for_block(&self, parent: ParentId) -> u32 {
        let widest = |free: &FreeSet| free.widest().map_or(0, need_of);
        if let Some(row) = self.prefixes.get(parent.prefix()) {
            let room = match self.index.divided.get(&parent.prefix()) {
                Some(division) => widest(&division.free),
                None => widest(&Division::none_of(row.cidr, row.keep_edges).free),
            };
            return match room {
                0 if self.prefix_cooling_offered(parent.prefix()).is_some() => need_of(0),
                room => room,
            };
        }
        let (Some(row), Some(space)) = (self.pools.get(parent.pool()), self.space(parent.pool())) else {
            return 0;
        };
        match widest(&space.free) {
            0 if self.cooling_to_spare(&row.spec, space) > 0
                && self.first_cooling_offered(space).is_some() =>
            {
                need_of(0)
            }
            room => room,
        }
    }

    /// Present reason for waiting: the pool may have been closed since the last attempt.
    #[must_use]
    pub fn why_prefix_waits(&self, claim: &PrefixClaim) -> (WaitReason, Cause) {
        let pool = self.pools.named(claim.pool);
        let closed = self.closed_reason(claim.pool, &pool.spec).filter(|_| claim.missing.is_some());
        match closed {
            Some(closed) => {
                let pools = vec![(pool.spec.name.clone(), closed)];
                (WaitReason::PoolNotReady, Cause::PoolsClosed { pools })
            }
            None => (claim.why, Cause::clone(&claim.cause)),
        }
    }
}

/// Next step of a prefix request.
pub(crate) enum Next {
    /// A level needs a block.
    Block(MissingBlock),
    /// A level of this owner neither exists nor has a length.
    Unspecified(PrefixOwner),
    /// All levels exist.
    Complete,
}

/// Need of a block that cools for the owner itself: it needs no room.
const OWN_BLOCK: u32 = 0;

/// Need of a block of 2^`order` addresses, above zero.
fn need_of(order: u8) -> u32 {
    u32::from(order) + 1
}
