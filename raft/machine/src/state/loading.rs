//! A state made of rows as they come.
//!
//! Most of the work of a start is here, and it takes a core as long as reading the rows does. So it can be shared:
//! the tables that grow with the number of allocations each have a lane of their own, where their rows are decoded
//! and what is derived from them alone is made. What is derived from several tables comes last.

use crate::state::damaged::Damaged;
use crate::state::row::{
    Allocation, Attachment, Boots, Cooling, Endpoint, Generation, Member, Namespace, Network, Node, Pool,
    PoolState, Prefix, Replay, Reservation, Subnet, Token, Tombstone,
};
use crate::state::row_key::RowKey;
use crate::state::table::{Row, decode};
use crate::state::{HEADER, Header, Rows, State};
use crate::value::row::Segment;

/// How many lanes there are.
pub const LANES: usize = 4;

/// The lane of a table, below [`LANES`]: all rows of a table belong into one.
#[must_use]
pub fn lane(table: u8) -> usize {
    match table {
        Endpoint::TABLE => 1,
        Attachment::TABLE => 2,
        // Together: they share the addresses.
        Allocation::TABLE | Cooling::TABLE => 3,
        _ => 0,
    }
}

/// A state of which not all rows have come.
#[derive(Debug)]
pub struct Loading {
    state: State,
    header: Option<Header>,
}

impl Default for Loading {
    fn default() -> Self {
        Self { state: State::without_rows(), header: None }
    }
}

impl Loading {
    /// Takes a row in; they may come in any order.
    ///
    /// # Errors
    /// If it can't be read, or is there already.
    pub fn put(&mut self, key: RowKey, bytes: &[u8]) -> Result<(), Damaged> {
        let state = &mut self.state;
        let ledger = &mut state.ledger;
        match key.table {
            0 => {
                let read: Header = decode(bytes).ok_or_else(|| Damaged("the header can't be read".into()))?;
                if key != HEADER || !read.makes_sense() || self.header.replace(read).is_some() {
                    return Err(Damaged("the header is there twice, or makes no sense".into()));
                }
                Ok(())
            }
            Network::TABLE => state.rows.networks.load(key, bytes, ledger),
            Subnet::TABLE => state.rows.subnets.load(key, bytes, ledger),
            Pool::TABLE => state.rows.pools.load(key, bytes, ledger),
            Reservation::TABLE => state.rows.reservations.load(key, bytes, ledger),
            PoolState::TABLE => state.rows.pool_states.load(key, bytes, ledger),
            Endpoint::TABLE => state.rows.endpoints.load(key, bytes, ledger),
            Attachment::TABLE => state.rows.attachments.load(key, bytes, ledger),
            Allocation::TABLE => state.rows.allocations.load(key, bytes, ledger),
            Tombstone::TABLE => state.rows.tombstones.load(key, bytes, ledger),
            Cooling::TABLE => state.rows.coolings.load(key, bytes, ledger),
            Boots::TABLE => state.rows.boots.load(key, bytes, ledger),
            Token::TABLE => state.rows.tokens.load(key, bytes, ledger),
            Replay::TABLE => state.rows.replays.load(key, bytes, ledger),
            Segment::TABLE => state.rows.segments.load(key, bytes, ledger),
            Member::TABLE => state.rows.members.load(key, bytes, ledger),
            Generation::TABLE => state.rows.generations.load(key, bytes, ledger),
            Node::TABLE => state.rows.nodes.load(key, bytes, ledger),
            Namespace::TABLE => state.rows.namespaces.load(key, bytes, ledger),
            Prefix::TABLE => state.rows.prefixes.load(key, bytes, ledger),
            other => Err(Damaged(format!("table {other} is not known to this version"))),
        }
    }

    /// Makes what finds this lane's rows fast.
    #[must_use]
    pub fn indexed(mut self) -> Indexed {
        self.state.index_tables();
        Indexed(self)
    }

    /// The state, once all rows are there.
    ///
    /// # Errors
    /// If a row contradicts another, or there is no header.
    pub fn finish(self) -> Result<State, Damaged> {
        self.indexed().finish([])
    }
}

/// The rows of a lane, with what is derived from them.
#[derive(Debug)]
pub struct Indexed(Loading);

impl Indexed {
    /// The state of these rows and of those of all `other` lanes.
    ///
    /// # Errors
    /// If a row contradicts another, or there is no header.
    pub fn finish(self, others: impl IntoIterator<Item = Self>) -> Result<State, Damaged> {
        let Loading { mut state, mut header } = self.0;
        for Self(other) in others {
            header = header.or(other.header);
            state.take_in(other.state);
        }
        state.header = header.ok_or_else(|| Damaged("there is no header".into()))?;
        state.index_across()?;
        Ok(state)
    }
}

impl State {
    /// Takes in the rows of another lane, which are of other tables.
    fn take_in(&mut self, other: Self) {
        let Self { header: _, rows, ledger, index } = other;
        self.rows.take_in(rows);
        self.ledger.digest = self.ledger.digest.wrapping_add(ledger.digest);
        self.index.take_in(index);
    }
}

impl Rows {
    fn take_in(&mut self, other: Self) {
        let Self {
            networks,
            subnets,
            pools,
            reservations,
            pool_states,
            endpoints,
            attachments,
            allocations,
            tombstones,
            coolings,
            boots,
            tokens,
            replays,
            segments,
            members,
            generations,
            nodes,
            namespaces,
            prefixes,
        } = other;
        self.networks.take_in(networks);
        self.subnets.take_in(subnets);
        self.pools.take_in(pools);
        self.reservations.take_in(reservations);
        self.pool_states.take_in(pool_states);
        self.endpoints.take_in(endpoints);
        self.attachments.take_in(attachments);
        self.allocations.take_in(allocations);
        self.tombstones.take_in(tombstones);
        self.coolings.take_in(coolings);
        self.boots.take_in(boots);
        self.tokens.take_in(tokens);
        self.replays.take_in(replays);
        self.segments.take_in(segments);
        self.members.take_in(members);
        self.generations.take_in(generations);
        self.nodes.take_in(nodes);
        self.namespaces.take_in(namespaces);
        self.prefixes.take_in(prefixes);
    }
}
