//! Ids of rows, each with the type of its row.

use std::cmp::Ordering;
use std::fmt::{self, Debug, Display};
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use serde::{Deserialize, Serialize};

use crate::value::row::{
    Allocation, Attachment, BootHistory, Check, Cooling, Endpoint, Network, Pool, Prefix, PrefixClaim,
    PrefixCooling, Quarantine, Reservation, Subnet, Token, Tombstone,
};

/// Id of a row of type `T`. Its encoding is that of the number alone.
#[derive(Serialize, Deserialize)]
#[serde(transparent, bound = "")]
pub struct Id<T>(u64, PhantomData<fn() -> T>);

pub type NetworkId = Id<Network>;
pub type SubnetId = Id<Subnet>;
pub type PoolId = Id<Pool>;
pub type ReservationId = Id<Reservation>;
/// Id of an incarnation of an endpoint.
pub type EndpointId = Id<Endpoint>;
pub type AttachmentId = Id<Attachment>;
pub type AllocationId = Id<Allocation>;
pub type TombstoneId = Id<Tombstone>;
/// Id of a cooling address.
pub type CoolingId = Id<Cooling>;
/// Id of a quarantined address.
pub type QuarantineId = Id<Quarantine>;
/// Id of a proof that an address is unused.
pub type CheckId = Id<Check>;
/// Id of a node's boots.
pub type BootHistoryId = Id<BootHistory>;
pub type TokenId = Id<Token>;
pub type PrefixId = Id<Prefix>;
/// Id of a waiting prefix request; also its place in the queue.
pub type PrefixClaimId = Id<PrefixClaim>;
/// Id of a cooling block of a prefix.
pub type PrefixCoolingId = Id<PrefixCooling>;
/// Id of the pool or the prefix that a prefix is cut from. Ids never repeat, so a number belongs to only one
/// of the two.
pub type ParentId = Id<Parent>;

/// A pool or a prefix.
pub enum Parent {}

impl<T> Id<T> {
    /// Lowest id, below the ids of all rows.
    pub const MIN: Self = Self::new(0);
    /// Highest id, above the ids of all rows.
    pub const MAX: Self = Self::new(u64::MAX);

    /// Returns the id with a number: the revision that created the row.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number, PhantomData)
    }

    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl From<PoolId> for ParentId {
    fn from(pool: PoolId) -> Self {
        Self::new(pool.0)
    }
}

impl From<PrefixId> for ParentId {
    fn from(prefix: PrefixId) -> Self {
        Self::new(prefix.0)
    }
}

impl PrefixId {
    /// Converts to the id of a prefix claim. No row has that id if this is the id of a prefix.
    #[must_use]
    pub(crate) fn claim(self) -> PrefixClaimId {
        Id::new(self.0)
    }
}

impl ParentId {
    /// Converts to the id of a prefix. No row has that id if this is the id of a pool.
    #[must_use]
    pub(crate) fn prefix(self) -> PrefixId {
        Id::new(self.0)
    }

    /// Converts to the id of a pool. No row has that id if this is the id of a prefix.
    #[must_use]
    pub(crate) fn pool(self) -> PoolId {
        Id::new(self.0)
    }
}

impl<T> From<u64> for Id<T> {
    fn from(number: u64) -> Self {
        Self::new(number)
    }
}

impl<T> From<Id<T>> for u64 {
    fn from(id: Id<T>) -> Self {
        id.0
    }
}

impl<T> Clone for Id<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Id<T> {}

impl<T> PartialEq for Id<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T> Eq for Id<T> {}

impl<T> PartialOrd for Id<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Id<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

impl<T> Hash for Id<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<T> Debug for Id<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Debug::fmt(&self.0, f)
    }
}

impl<T> Display for Id<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(&self.0, f)
    }
}
