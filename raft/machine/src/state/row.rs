//! Rows by their tables.

use serde::{Deserialize, Serialize};

use crate::command::Outcome;
use crate::state::State;
use crate::state::damaged::Damaged;
use crate::state::id::*;
use crate::state::index::Index;
pub(crate) use crate::state::named::Named;
use crate::state::row_key::RowKey;
use crate::state::shared_names::SharedNames;
use crate::state::table::{Ledger, Row, Table};
use crate::value::Text;
pub use crate::value::prefix::PrefixOwner;
pub use crate::value::quota::QuotaScope;
pub use crate::value::row::*;
pub use crate::value::{IdList, RareList, ReportedPod, ReportedRealm};

/// Kept answer to a request with an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replay {
    /// Principal of the request.
    pub principal: Text,
    /// Idempotency key of the request.
    pub key: Text,
    /// Hash of the request.
    pub request: u128,
    /// Outcome of the request.
    pub outcome: Outcome,
    /// Log time at which the answer is deleted.
    pub until_ms: u64,
}

/// Id of a kept answer.
pub type ReplayId = Id<Replay>;

/// A row in its table.
pub(crate) trait InRows: Row {
    fn table(rows: &Rows) -> &Table<Self>;

    fn table_mut(rows: &mut Rows) -> &mut Table<Self>;
}

macro_rules! rows {
    ($($(#[doc = $doc:literal])+ $table:ident: $type:ty = $number:literal, $id:ty, $word:literal;)*) => {
        /// Rows of all tables. Only `State::write` and `State::erase` change one.
        #[derive(Debug, Clone, Default)]
        pub struct Rows {
            $($(#[doc = $doc])+ pub $table: Table<$type>,)*
        }

        $(impl Row for $type {
            type Id = $id;
            const TABLE: u8 = $number;
            const WORD: &'static str = $word;
        }

        impl InRows for $type {
            fn table(rows: &Rows) -> &Table<Self> {
                &rows.$table
            }

            fn table_mut(rows: &mut Rows) -> &mut Table<Self> {
                &mut rows.$table
            }
        })*

        impl Rows {
            /// Every row, encoded.
            pub(super) fn all_encoded(&self) -> impl Iterator<Item = (RowKey, Vec<u8>)> + '_ {
                std::iter::empty()$(.chain(self.$table.all_encoded()))*
            }

            /// One row, encoded.
            pub(super) fn encoded(&self, key: RowKey) -> Option<Vec<u8>> {
                match key.table {
                    $($number => self.$table.encoded(key.id.into()),)*
                    _ => None,
                }
            }

            /// Decodes and adds a stored row.
            pub(super) fn load(
                &mut self,
                key: RowKey,
                bytes: &[u8],
                ledger: &mut Ledger,
                names: &mut SharedNames,
            ) -> Result<(), Damaged> {
                match key.table {
                    $($number => self.$table.load(key, bytes, ledger, names),)*
                    other => Err(Damaged(format!("table {other} is not known to this version"))),
                }
            }

            /// Merges the rows of other tables.
            pub(super) fn take_in(&mut self, other: Self) {
                $(self.$table.take_in(other.$table);)*
            }
        }

        #[cfg(feature = "testing")]
        impl Rows {
            /// Tables with their names, to be dropped one after another.
            pub(super) fn into_parts(self) -> Vec<(&'static str, Box<dyn std::any::Any>)> {
                vec![$((stringify!($table), Box::new(self.$table))),*]
            }
        }

        impl State {
            /// Derives the entries that each row has by itself.
            pub(super) fn index_tables(&mut self) {
                self.index = Index::default();
                $(self.enter_all::<$type>();)*
            }
        }

        /// Noun for a row of a table.
        #[must_use]
        pub fn word_of(table: u8) -> &'static str {
            match table {
                0 => "header",
                $($number => $word,)*
                _ => "unknown table",
            }
        }
    };
}

// The header is table 0. Members have their Raft ids, segments and epochs their numbers. Table numbers are
// part of the format of rows and snapshots and never change.
rows! {
    /// Address spaces.
    networks: Network = 1, NetworkId, "network";
    /// CIDRs of networks.
    subnets: Subnet = 2, SubnetId, "subnet";
    /// Named sets of addresses.
    pools: Pool = 3, PoolId, "pool";
    /// Addresses that no pool ever allocates.
    reservations: Reservation = 4, ReservationId, "reservation";
    /// Data of pools that changes with their use, by the pool's id.
    pool_states: PoolState = 5, PoolId, "pool state";
    /// Incarnations of endpoints.
    endpoints: Endpoint = 6, EndpointId, "endpoint";
    /// Live attachments.
    attachments: Attachment = 7, AttachmentId, "attachment";
    /// Addresses held by endpoints.
    allocations: Allocation = 8, AllocationId, "allocation";
    /// Tombstones: releases of attachments.
    tombstones: Tombstone = 9, TombstoneId, "tombstone";
    /// Cooling addresses.
    coolings: Cooling = 10, CoolingId, "cooling";
    /// Boots of nodes that have sent requests.
    boots: BootHistory = 11, BootHistoryId, "boots of a node";
    /// Credentials of callers.
    tokens: Token = 12, TokenId, "token";
    /// Answers kept for a repetition.
    replays: Replay = 13, ReplayId, "kept answer";
    /// Sealed pieces of the journal, by their number.
    segments: Segment = 14, u64, "segment of the journal";
    /// Members, present and former.
    members: Member = 15, u64, "member";
    /// Epochs that began with a restore.
    epochs: Epoch = 16, u64, "epoch";
    /// Hosts, as operators describe them.
    nodes: Node = 17, Id<Node>, "node";
    /// Groups of endpoints.
    namespaces: Namespace = 18, Id<Namespace>, "namespace";
    /// Blocks of addresses that their owners may divide.
    prefixes: Prefix = 19, PrefixId, "prefix";
    /// Newest reports of nodes' agents.
    reports: NodeReport = 20, Id<NodeReport>, "report of a node";
    /// Prefix requests that wait.
    prefix_claims: PrefixClaim = 21, PrefixClaimId, "prefix claim";
    /// Cooling blocks of prefixes.
    prefix_coolings: PrefixCooling = 22, PrefixCoolingId, "cooling block of a prefix";
    /// Addresses that foreign hosts use.
    quarantines: Quarantine = 23, QuarantineId, "quarantine";
    /// Proofs that addresses are unused.
    checks: Check = 24, CheckId, "check";
    /// Stations that use allocated addresses, by the allocation's id.
    neighbors: Neighbor = 25, AllocationId, "neighbor";
    /// Pods as watchers report them.
    reported_pods: ReportedPod = 26, Id<ReportedPod>, "reported pod";
    /// Realms whose pods watchers report.
    reported_realms: ReportedRealm = 27, Id<ReportedRealm>, "realm of reported pods";
    /// Templates of the configuration of hosts.
    host_policies: HostPolicy = 28, Id<HostPolicy>, "host policy";
}
