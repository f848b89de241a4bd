//! Rows by their tables.

use serde::{Deserialize, Serialize};

use crate::command::Outcome;
use crate::state::id::*;
use crate::state::table::Row;
pub use crate::value::prefix::PrefixOwner;
pub use crate::value::quota::Account;
pub use crate::value::row::*;
use crate::value::{Kind, Text};

/// The answer to a request that had a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replay {
    /// Who asked.
    pub principal: Text,
    /// Under which key.
    pub key: Text,
    /// Hash of the request.
    pub request: u128,
    /// What became of it.
    pub outcome: Outcome,
    /// The log time at which it is forgotten.
    pub until_ms: u64,
}

/// Id of a kept answer.
pub type ReplayId = Id<Replay>;

/// A row that has a name among those of its kind.
pub(crate) trait Named: Row<Id = Id<Self>> {
    /// Its kind.
    const KIND: Kind;
}

macro_rules! named {
    ($($type:ident)*) => {
        $(impl Named for $type {
            const KIND: Kind = Kind::$type;
        })*
    };
}

named! { Network Subnet Pool Reservation Token Node Namespace }

macro_rules! rows {
    ($($type:ty: $id:ty = $table:literal, $word:literal;)*) => {
        $(impl Row for $type {
            type Id = $id;
            const TABLE: u8 = $table;
            const WORD: &'static str = $word;
        })*

        /// What people call a row of a table.
        #[must_use]
        pub fn word_of(table: u8) -> &'static str {
            match table {
                0 => "header",
                $($table => $word,)*
                _ => "unknown table",
            }
        }
    };
}

// The header is table 0. Members have the ids that the log knows them by, segments and generations their numbers.
// Numbers are part of the format of rows and snapshots and never move.
rows! {
    Network: NetworkId = 1, "network";
    Subnet: SubnetId = 2, "subnet";
    Pool: PoolId = 3, "pool";
    Reservation: ReservationId = 4, "reservation";
    PoolState: PoolId = 5, "pool state";
    Endpoint: EndpointId = 6, "endpoint";
    Attachment: AttachmentId = 7, "attachment";
    Allocation: AllocationId = 8, "allocation";
    Tombstone: TombstoneId = 9, "tombstone";
    Cooling: CoolingId = 10, "cooling";
    Boots: BootsId = 11, "boots of a node";
    Token: TokenId = 12, "token";
    Replay: ReplayId = 13, "kept answer";
    Segment: u64 = 14, "segment of the journal";
    Member: u64 = 15, "member";
    Generation: u64 = 16, "generation";
    Node: Id<Node> = 17, "node";
    Namespace: Id<Namespace> = 18, "namespace";
    Prefix: PrefixId = 19, "prefix";
}
