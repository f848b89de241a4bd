//! Blocks of rows: the values in sled.
//!
//! Rows with neighbouring ids share a value, because the work of sled for a key exceeds that of the machine
//! for a row, and new rows have ascending ids.

use std::iter;

use ipam_machine::{RowKey, State};

const VERSION: u8 = 2;
/// Ids of a block. With more of them, new rows cost less and a single change costs more.
pub(super) const IDS: u64 = 16;
/// Bytes of an id in its block and of the length of a row.
const ROW_HEAD_BYTES: usize = 5;
/// Bytes of the checksum.
const SUM_BYTES: usize = 4;

/// An encoded row.
pub(in crate::store) type EncodedRow = (RowKey, Vec<u8>);

/// Rows of neighbouring ids; an empty block stands for deleted rows.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::store) struct Block {
    /// Table, and the first id.
    pub(in crate::store) key: RowKey,
    /// Rows in the order of their ids.
    pub(in crate::store) rows: Vec<EncodedRow>,
}

impl Block {
    /// Present rows of a block.
    fn of(key: RowKey, state: &State) -> Self {
        let keys = (0..IDS).map(|offset| RowKey { id: key.id | offset, ..key });
        Self { key, rows: keys.filter_map(|key| Some((key, state.row(key)?))).collect() }
    }

    /// Encodes version, rows and a checksum that covers the key too: a block under another key is damage.
    pub(in crate::store) fn seal(&self) -> Vec<u8> {
        let size = self.rows.iter().map(|(_, row)| ROW_HEAD_BYTES + row.len()).sum::<usize>();
        let mut body = Vec::with_capacity(1 + size + SUM_BYTES);
        body.push(VERSION);
        for (key, row) in &self.rows {
            let [.., offset] = (key.id % IDS).to_be_bytes();
            body.push(offset);
            body.extend_from_slice(&u32::try_from(row.len()).unwrap_or(u32::MAX).to_be_bytes());
            body.extend_from_slice(row);
        }
        with_sum(self.key, body)
    }

    /// The reverse of [`seal`](Self::seal).
    ///
    /// # Errors
    /// The damage in words.
    pub(in crate::store) fn unseal(key: &[u8], sealed: &[u8]) -> Result<Self, String> {
        let key = RowKey::from_bytes(key).ok_or("a key isn't a block's")?;
        let (body, found) = sealed.split_last_chunk::<SUM_BYTES>().ok_or("a block is too short")?;
        if *found != sum(key, body) {
            return Err(format!("the block of {key:?} is damaged"));
        }
        let (VERSION, mut rest) = body.split_first().map_or((0, body), |(version, rest)| (*version, rest))
        else {
            return Err(format!("the block of {key:?} has an unknown version"));
        };
        let mut rows = Vec::new();
        while let Some((row, after)) = split_row(key, rest) {
            rows.push(row);
            rest = after;
        }
        let is_ascending = rows.is_sorted_by(|(one, _), (other, _)| one < other);
        if !rest.is_empty() || !is_ascending || first_of(key) != key {
            return Err(format!("the block of {key:?} has contradicting rows"));
        }
        Ok(Self { key, rows })
    }
}

/// Blocks of touched rows, in order, each once.
pub(in crate::store) fn touched(mut keys: Vec<RowKey>, state: &State) -> impl Iterator<Item = Block> {
    keys.iter_mut().for_each(|key| *key = first_of(*key));
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter().map(|key| Block::of(key, state))
}

/// Blocks of all rows of a state.
pub(super) fn all(state: &State) -> impl Iterator<Item = Block> {
    let mut rows = state.rows().peekable();
    iter::from_fn(move || {
        let key = first_of(rows.peek()?.0);
        let of_block = iter::from_fn(|| rows.next_if(|(row, _)| first_of(*row) == key));
        Some(Block { key, rows: of_block.collect() })
    })
}

/// Appends the checksum to a body.
pub(in crate::store) fn with_sum(key: RowKey, mut body: Vec<u8>) -> Vec<u8> {
    let sum = sum(key, &body);
    body.extend_from_slice(&sum);
    body
}

fn first_of(key: RowKey) -> RowKey {
    RowKey { id: key.id & !(IDS - 1), ..key }
}

/// The first row of a block's body, and the rest.
fn split_row(block: RowKey, body: &[u8]) -> Option<(EncodedRow, &[u8])> {
    let (offset, rest) = body.split_first()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (row, rest) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
    let offset = Some(u64::from(*offset)).filter(|offset| *offset < IDS)?;
    Some(((RowKey { id: block.id | offset, ..block }, row.to_vec()), rest))
}

fn sum(key: RowKey, body: &[u8]) -> [u8; SUM_BYTES] {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&key.to_bytes());
    hasher.update(body);
    hasher.finalize().to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block() -> Block {
        let row = |id| (RowKey { table: 3, id }, format!("row {id}").into_bytes());
        Block { key: RowKey { table: 3, id: 32 }, rows: vec![row(32), row(35), row(47)] }
    }

    fn read(key: RowKey, sealed: &[u8]) -> Result<Block, String> {
        Block::unseal(&key.to_bytes(), sealed)
    }

    #[test]
    fn a_block_is_read_as_it_was_written() {
        assert_eq!(read(block().key, &block().seal()), Ok(block()));
        let empty = Block { rows: Vec::new(), ..block() };
        assert_eq!(read(empty.key, &empty.seal()), Ok(empty));
    }

    #[test]
    fn an_altered_block_or_one_under_another_key_is_damage() {
        let sealed = block().seal();
        assert!(read(RowKey { id: 48, ..block().key }, &sealed).is_err());
        for offset in 0..sealed.len() {
            let mut altered = sealed.clone();
            altered[offset] ^= 1;
            assert!(read(block().key, &altered).is_err(), "{offset}");
            assert!(read(block().key, &sealed[..offset]).is_err(), "{offset}");
        }
    }

    #[test]
    fn rows_that_no_block_has_are_damage() {
        let row = |offset: u8| [&[offset], 1_u32.to_be_bytes().as_slice(), b"x"].concat();
        let (twice, backwards, beyond) = ([row(1), row(1)], [row(2), row(1)], [row(1), row(16)]);
        for rows in [twice, backwards, beyond] {
            let body = [vec![VERSION], rows.concat()].concat();
            assert!(read(block().key, &with_sum(block().key, body)).is_err(), "{rows:?}");
        }
        let key = RowKey { id: 33, ..block().key };
        assert!(read(key, &with_sum(key, vec![VERSION])).is_err(), "not the first id");
        assert!(read(block().key, &with_sum(block().key, vec![1])).is_err(), "another version");
    }

    #[test]
    fn a_block_is_written_once_for_all_its_touched_rows() {
        let key = |table, id| RowKey { table, id };
        let (keys, state) = (vec![key(2, 17), key(1, 5), key(2, 31), key(1, 5), key(2, 32)], State::new());
        let keys: Vec<_> = touched(keys, &state).map(|block| block.key).collect();
        assert_eq!(keys, [key(1, 0), key(2, 16), key(2, 32)]);
    }

    #[test]
    fn the_blocks_of_a_state_have_all_its_rows() {
        let state = State::new();
        let rows: Vec<_> = all(&state).flat_map(|block| block.rows).collect();
        assert_eq!(rows, state.rows().collect::<Vec<_>>());
        let keys = rows.iter().map(|(key, _)| *key).collect();
        assert!(touched(keys, &state).eq(all(&state)));
    }
}
