//! A state made of rows as they come.

use super::Damaged;
use super::journal::Segment;
use super::model::{
    Allocation, Attachment, Cooling, Endpoint, Generation, Member, Network, Node, Pool, PoolState, Replay,
    Reservation, Subnet, Token, Tombstone,
};
use super::row::RowKey;
use super::state::{HEADER, Header, State};
use super::table::{Row, decode};

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
            Network::TABLE => state.networks.load(key, bytes, ledger),
            Subnet::TABLE => state.subnets.load(key, bytes, ledger),
            Pool::TABLE => state.pools.load(key, bytes, ledger),
            Reservation::TABLE => state.reservations.load(key, bytes, ledger),
            PoolState::TABLE => state.pool_states.load(key, bytes, ledger),
            Endpoint::TABLE => state.endpoints.load(key, bytes, ledger),
            Attachment::TABLE => state.attachments.load(key, bytes, ledger),
            Allocation::TABLE => state.allocations.load(key, bytes, ledger),
            Tombstone::TABLE => state.tombstones.load(key, bytes, ledger),
            Cooling::TABLE => state.coolings.load(key, bytes, ledger),
            Node::TABLE => state.nodes.load(key, bytes, ledger),
            Token::TABLE => state.tokens.load(key, bytes, ledger),
            Replay::TABLE => state.replays.load(key, bytes, ledger),
            Segment::TABLE => state.segments.load(key, bytes, ledger),
            Member::TABLE => state.members.load(key, bytes, ledger),
            Generation::TABLE => state.generations.load(key, bytes, ledger),
            other => Err(Damaged(format!("table {other} is not known to this version"))),
        }
    }

    /// The state, once all rows are there.
    ///
    /// # Errors
    /// If a row contradicts another, or there is no header.
    pub fn finish(self) -> Result<State, Damaged> {
        let Self { mut state, header } = self;
        state.header = header.ok_or_else(|| Damaged("there is no header".into()))?;
        state.rebuild_index()?;
        Ok(state)
    }
}
