//! Tables: rows by id, with a digest that follows every change.

use std::sync::Arc;

use imbl::OrdMap;
use ipam_api::limits::ROW_BYTES_MAX;
use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::xxh3_128;

use super::Damaged;
use super::journal::Journaled;
use super::row::RowKey;

/// Version of a row's encoding; its first byte.
const ROW_VERSION: u8 = 1;

/// What a table holds.
pub trait Row: Serialize + DeserializeOwned + Clone {
    /// The table's number in row keys.
    const TABLE: u8;
    /// What people call one.
    const WORD: &'static str;
}

/// Rows of one type by their id. A clone costs nothing and is not touched by later changes.
#[derive(Debug)]
pub struct Table<T> {
    rows: OrdMap<u64, Slot<T>>,
}

#[derive(Debug)]
struct Slot<T> {
    row: Arc<T>,
    hash: u128,
    /// Of the row as it is written. It takes no room: the hash leaves some.
    bytes: u32,
}

impl<T> Clone for Slot<T> {
    fn clone(&self) -> Self {
        Self { row: Arc::clone(&self.row), hash: self.hash, bytes: self.bytes }
    }
}

impl<T> Clone for Table<T> {
    fn clone(&self) -> Self {
        Self { rows: self.rows.clone() }
    }
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { rows: OrdMap::new() }
    }
}

/// What changes along with the rows: the digest of all tables, and which rows were touched.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Sum of the rows' hashes: it doesn't depend on the order of changes.
    pub digest: u128,
    /// Keys of rows written or removed since somebody last asked.
    pub touched: Vec<RowKey>,
    /// What became of the journal since somebody last asked.
    pub journaled: Vec<Journaled>,
}

/// What was touched and written down is told once, to the owner of the original.
impl Clone for Ledger {
    fn clone(&self) -> Self {
        Self { digest: self.digest, touched: Vec::new(), journaled: Vec::new() }
    }
}

impl Ledger {
    /// Takes over what `before` has not told yet, to be told before one's own.
    pub(super) fn follow(&mut self, before: &mut Self) {
        before.touched.append(&mut self.touched);
        before.journaled.append(&mut self.journaled);
        self.touched = std::mem::take(&mut before.touched);
        self.journaled = std::mem::take(&mut before.journaled);
    }
}

impl<T: Row> Table<T> {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// One row.
    #[must_use]
    pub fn get(&self, id: u64) -> Option<&T> {
        self.rows.get(&id).map(|slot| &*slot.row)
    }

    /// Bytes of one row as it is written; 0 if it isn't there.
    pub(super) fn bytes_of(&self, id: u64) -> u64 {
        self.rows.get(&id).map_or(0, |slot| slot.bytes.into())
    }

    /// All rows, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.rows.iter().map(|(id, slot)| (*id, &*slot.row))
    }

    /// The rows with an id above `after`, oldest first.
    pub fn iter_after(&self, after: u64) -> impl Iterator<Item = (u64, &T)> {
        self.rows
            .range((std::ops::Bound::Excluded(after), std::ops::Bound::Unbounded))
            .map(|(id, slot)| (*id, &*slot.row))
    }

    /// The oldest row.
    #[must_use]
    pub fn first(&self) -> Option<(u64, &T)> {
        self.rows.get_min().map(|(id, slot)| (*id, &*slot.row))
    }

    /// The newest row.
    #[must_use]
    pub fn last(&self) -> Option<(u64, &T)> {
        self.rows.get_max().map(|(id, slot)| (*id, &*slot.row))
    }

    /// Writes a row.
    ///
    /// # Panics
    /// For a row that no snapshot could carry. Commands that would write one are refused before: a member that wrote
    /// it all the same could neither make a snapshot nor be recovered from.
    pub fn put(&mut self, id: u64, row: T, ledger: &mut Ledger) {
        let encoded = encode(&row);
        assert!(
            encoded.len() <= ROW_BYTES_MAX,
            "the row of {} {id} has {} bytes, and a row has at most {ROW_BYTES_MAX}",
            T::WORD,
            encoded.len()
        );
        self.put_encoded(id, row, &encoded, ledger);
    }

    /// Writes a row of any size, as a defect would.
    #[cfg(feature = "spoil")]
    pub fn put_of_any_size(&mut self, id: u64, row: T, ledger: &mut Ledger) {
        let encoded = encode(&row);
        self.put_encoded(id, row, &encoded, ledger);
    }

    fn put_encoded(&mut self, id: u64, row: T, encoded: &[u8], ledger: &mut Ledger) {
        let hash = hash(RowKey { table: T::TABLE, id }, encoded);
        let old = self.rows.insert(id, Slot { row: Arc::new(row), hash, bytes: length(encoded) });
        let old_hash = old.map_or(0, |slot| slot.hash);
        ledger.digest = ledger.digest.wrapping_sub(old_hash).wrapping_add(hash);
        ledger.touched.push(RowKey { table: T::TABLE, id });
    }

    /// Removes a row.
    pub fn remove(&mut self, id: u64, ledger: &mut Ledger) -> Option<Arc<T>> {
        let slot = self.rows.remove(&id)?;
        ledger.digest = ledger.digest.wrapping_sub(slot.hash);
        ledger.touched.push(RowKey { table: T::TABLE, id });
        Some(slot.row)
    }

    /// Takes in all rows of another table, whose ids are others. Costs as much as the smaller one is large.
    pub(super) fn take_in(&mut self, other: Self) {
        self.rows = std::mem::take(&mut self.rows).union(other.rows);
    }

    pub(super) fn encoded(&self, id: u64) -> Option<Vec<u8>> {
        self.get(id).map(encode)
    }

    pub(super) fn all_encoded(&self) -> impl Iterator<Item = (RowKey, Vec<u8>)> + '_ {
        self.iter().map(|(id, row)| (RowKey { table: T::TABLE, id }, encode(row)))
    }

    pub(super) fn load(&mut self, key: RowKey, bytes: &[u8], ledger: &mut Ledger) -> Result<(), Damaged> {
        let row: T = decode(bytes).ok_or_else(|| {
            Damaged(format!("the row of {} {} can't be read by this version", T::WORD, key.id))
        })?;
        let mut hashed = Vec::with_capacity(RowKey::BYTES + bytes.len());
        hashed.extend_from_slice(&key.to_bytes());
        let hashed = encode_onto(hashed, &row);
        // The digest is over bytes: the same row, written otherwise, would make another one of the same state.
        if hashed.get(RowKey::BYTES..) != Some(bytes) {
            return Err(Damaged(format!("the row of {} {} isn't written as rows are", T::WORD, key.id)));
        }
        let hash = xxh3_128(&hashed);
        ledger.digest = ledger.digest.wrapping_add(hash);
        match self.rows.insert(key.id, Slot { row: Arc::new(row), hash, bytes: length(bytes) }) {
            None => Ok(()),
            Some(_) => Err(Damaged(format!("the row of {} {} is there twice", T::WORD, key.id))),
        }
    }
}

fn length(encoded: &[u8]) -> u32 {
    u32::try_from(encoded.len()).unwrap_or(u32::MAX)
}

/// A row as bytes: the version, then postcard.
pub(super) fn encode<T: Serialize>(row: &T) -> Vec<u8> {
    encode_onto(Vec::new(), row)
}

fn encode_onto<T: Serialize>(mut bytes: Vec<u8>, row: &T) -> Vec<u8> {
    bytes.push(ROW_VERSION);
    // The rows' types (integers, text, lists, maps) are all such that postcard can't refuse them.
    postcard::to_extend(row, bytes).unwrap_or_default()
}

pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let (version, body) = bytes.split_first()?;
    (*version == ROW_VERSION).then(|| postcard::from_bytes(body).ok()).flatten()
}

pub(super) fn hash(key: RowKey, bytes: &[u8]) -> u128 {
    let mut input = Vec::with_capacity(RowKey::BYTES + bytes.len());
    input.extend_from_slice(&key.to_bytes());
    input.extend_from_slice(bytes);
    xxh3_128(&input)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::command::{NetworkIntention, Remarks, Text};
    use crate::machine::model::{Meta, Network};

    fn network(bytes: usize) -> Network {
        let meta = Meta {
            id: 7,
            revision: 7,
            created_wall_ms: 1,
            created_by: Text::given("me"),
            updated_wall_ms: 1,
            updated_by: Text::given("me"),
            updated_fields: Vec::new(),
        };
        let remarks = Remarks { description: Text::given("x".repeat(bytes)), ..Remarks::default() };
        Network { meta, intention: NetworkIntention { name: "blue".parse().unwrap(), remarks } }
    }

    #[test]
    fn a_row_of_the_largest_size_is_written() {
        let around = encode(&network(ROW_BYTES_MAX)).len() - ROW_BYTES_MAX;
        let mut table = Table::default();
        table.put(7, network(ROW_BYTES_MAX - around), &mut Ledger::default());
        assert_eq!(table.bytes_of(7), ROW_BYTES_MAX as u64);
    }

    #[test]
    #[should_panic(expected = "the row of network 7 has ")]
    fn a_larger_one_is_a_defect() {
        Table::default().put(7, network(ROW_BYTES_MAX), &mut Ledger::default());
    }
}
