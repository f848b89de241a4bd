//! Tables: rows by id, with a digest that follows every change.

use crate::broken::broken;
use crate::invariant::{ENCODING, ROW_OF_ID, ROW_SIZE};
use crate::state::damaged::Damaged;
use crate::state::indexed::Indexed;
use crate::state::row_key::RowKey;
use crate::state::shared_names::SharedNames;
use crate::tree::Tree;
use crate::value::row::Journaled;
use ipam_api::limits::ROW_BYTES_MAX;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::{self, Debug, Display};
use std::ops::Bound;
use std::panic::Location;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_128;

/// Version of a row's encoding; its first byte.
const ROW_VERSION: u8 = 1;
/// Bytes that most encoded rows don't exceed.
const ROW_BYTES_USUAL: usize = 256;

/// Row of a table.
pub trait Row: Serialize + DeserializeOwned + Clone {
    /// The key of a row.
    type Id: Copy + Ord + Display + From<u64> + Into<u64>;
    /// The table's number in row keys.
    const TABLE: u8;
    /// Noun for a row.
    const WORD: &'static str;
}

/// Rows of one type by their id. A clone costs nothing and is not touched by later changes.
#[derive(Clone)]
pub struct Table<T: Row> {
    rows: Tree<T::Id, Arc<T>>,
}

impl<T: Row> Debug for Table<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.len(), T::WORD)
    }
}

impl<T: Row> Default for Table<T> {
    fn default() -> Self {
        Self { rows: Tree::default() }
    }
}

/// Data that changes along with the rows: the digest of all tables, and the keys of touched rows.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// Sum of the rows' hashes: it doesn't depend on the order of changes.
    pub digest: u128,
    /// Keys of rows written or removed since the last call.
    pub touched: Vec<RowKey>,
    /// Journal operations for the store since the last call.
    pub journaled: Vec<Journaled>,
}

/// A clone has no pending changes: they are reported once, to the owner of the original.
impl Clone for Ledger {
    fn clone(&self) -> Self {
        Self { digest: self.digest, touched: Vec::new(), journaled: Vec::new() }
    }
}

impl Ledger {
    /// Takes over the unreported changes of `before`, which are reported first.
    pub(crate) fn follow(&mut self, before: &mut Self) {
        before.touched.append(&mut self.touched);
        before.journaled.append(&mut self.journaled);
        self.touched = std::mem::take(&mut before.touched);
        self.journaled = std::mem::take(&mut before.journaled);
    }
}

impl<T: Row> Table<T> {
    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns true if the table has no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// One row.
    #[must_use]
    pub fn get(&self, id: T::Id) -> Option<&T> {
        self.rows.get(&id).map(|row| &**row)
    }

    /// The row of an id that another row or the index names.
    #[track_caller]
    pub(crate) fn named(&self, id: T::Id) -> &T {
        match self.get(id) {
            Some(row) => row,
            None => broken(ROW_OF_ID, format!("{} {id} at {}", T::WORD, Location::caller())),
        }
    }

    /// All rows, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (T::Id, &T)> {
        self.rows.iter().map(|(id, row)| (*id, &**row))
    }

    /// The rows with an id above `after`, oldest first.
    pub fn iter_after(&self, after: T::Id) -> impl Iterator<Item = (T::Id, &T)> {
        self.rows.range((Bound::Excluded(after), Bound::Unbounded)).map(|(id, row)| (*id, &**row))
    }

    /// The oldest row.
    #[must_use]
    pub fn first(&self) -> Option<(T::Id, &T)> {
        self.rows.first().map(|(id, row)| (*id, &**row))
    }

    /// The newest row.
    #[must_use]
    pub fn last(&self) -> Option<(T::Id, &T)> {
        self.rows.last().map(|(id, row)| (*id, &**row))
    }

    /// Writes a row; returns the one before it.
    ///
    /// Commands refuse a row that is too large for a snapshot: a member with such a row could neither make a
    /// snapshot nor be recovered from.
    pub(super) fn put(&mut self, id: T::Id, row: T, ledger: &mut Ledger) -> Option<Arc<T>> {
        let encoded = encode(&row);
        if encoded.len() > ROW_BYTES_MAX {
            broken(ROW_SIZE, format!("{} {id} has {} bytes", T::WORD, encoded.len()));
        }
        self.put_encoded(id, row, &encoded, ledger)
    }

    /// Writes a row of any size, as a defect would.
    #[cfg(feature = "testing")]
    pub(super) fn put_of_any_size(&mut self, id: T::Id, row: T, ledger: &mut Ledger) {
        let encoded = encode(&row);
        self.put_encoded(id, row, &encoded, ledger);
    }

    fn put_encoded(&mut self, id: T::Id, row: T, encoded: &[u8], ledger: &mut Ledger) -> Option<Arc<T>> {
        let key = RowKey { table: T::TABLE, id: id.into() };
        let hash = hash(key, encoded);
        let old = self.rows.insert(id, Arc::new(row));
        let old_hash = old.as_ref().map_or(0, |old| hash_of(key, &**old));
        ledger.digest = ledger.digest.wrapping_sub(old_hash).wrapping_add(hash);
        ledger.touched.push(key);
        old
    }

    /// Removes a row and returns it.
    pub(super) fn remove(&mut self, id: T::Id, ledger: &mut Ledger) -> Option<Arc<T>> {
        let row = self.rows.remove(&id)?;
        let key = RowKey { table: T::TABLE, id: id.into() };
        ledger.digest = ledger.digest.wrapping_sub(hash_of(key, &*row));
        ledger.touched.push(key);
        Some(row)
    }

    /// Merges the rows of another table with other ids. The cost is proportional to the smaller one.
    pub(super) fn take_in(&mut self, other: Self) {
        self.rows.take_in(other.rows);
    }

    pub(crate) fn encoded(&self, id: T::Id) -> Option<Vec<u8>> {
        self.get(id).map(encode)
    }

    pub(crate) fn all_encoded(&self) -> impl Iterator<Item = (RowKey, Vec<u8>)> + '_ {
        self.iter().map(|(id, row)| (RowKey { table: T::TABLE, id: id.into() }, encode(row)))
    }

    pub(super) fn load(
        &mut self,
        key: RowKey,
        bytes: &[u8],
        ledger: &mut Ledger,
        names: &mut SharedNames,
    ) -> Result<(), Damaged>
    where
        T: Indexed,
    {
        let mut row: T = decode(bytes).ok_or_else(|| {
            Damaged(format!("the row of {} {} can't be read by this version", T::WORD, key.id))
        })?;
        row.share_names(names);
        let hashed = hash_input(key, &row, bytes.len());
        // The digest covers bytes: another encoding of the row would give an equal state another digest.
        if hashed.get(RowKey::BYTES..) != Some(bytes) {
            return Err(Damaged(format!("the row of {} {} isn't written as rows are", T::WORD, key.id)));
        }
        let hash = xxh3_128(&hashed);
        ledger.digest = ledger.digest.wrapping_add(hash);
        match self.rows.insert(key.id.into(), Arc::new(row)) {
            None => Ok(()),
            Some(_) => Err(Damaged(format!("the row of {} {} is there twice", T::WORD, key.id))),
        }
    }
}

/// A row as bytes: the version, then postcard.
pub(crate) fn encode<T: Serialize>(row: &T) -> Vec<u8> {
    encode_onto(vec![ROW_VERSION], row)
}

/// Appends a value in postcard. All types of the machine (integers, text, lists, maps) can be encoded.
pub(crate) fn encode_onto<T: Serialize>(bytes: Vec<u8>, value: &T) -> Vec<u8> {
    match postcard::to_extend(value, bytes) {
        Ok(bytes) => bytes,
        Err(error) => broken(ENCODING, error.to_string()),
    }
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let (version, body) = bytes.split_first()?;
    (*version == ROW_VERSION).then(|| postcard::from_bytes(body).ok()).flatten()
}

/// Length of an encoded row.
pub(super) fn bytes_of<T: Row>(row: &T) -> u64 {
    encode(row).len() as u64
}

/// Hash of a row. No table keeps it: a row is hashed again when it is replaced or removed, which costs less
/// than the memory of millions of hashes.
fn hash_of<T: Row>(key: RowKey, row: &T) -> u128 {
    xxh3_128(&hash_input(key, row, ROW_BYTES_USUAL))
}

/// Key and encoding of a row, with room for an encoding of `bytes` bytes.
fn hash_input<T: Row>(key: RowKey, row: &T, bytes: usize) -> Vec<u8> {
    let mut input = Vec::with_capacity(RowKey::BYTES + bytes);
    input.extend_from_slice(&key.to_bytes());
    input.push(ROW_VERSION);
    encode_onto(input, row)
}

pub(crate) fn hash(key: RowKey, bytes: &[u8]) -> u128 {
    let mut input = Vec::with_capacity(RowKey::BYTES + bytes.len());
    input.extend_from_slice(&key.to_bytes());
    input.extend_from_slice(bytes);
    xxh3_128(&input)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broken::Broken;
    use crate::command::{Metadata, NetworkSpec, Text};
    use crate::state::row::{Meta, Network, RareList};

    fn network(bytes: usize) -> Network {
        let meta = Meta {
            id: 7,
            revision: 7,
            created_wall_ms: 1,
            created_by: Text::given("me"),
            updated_wall_ms: 1,
            updated_by: Text::given("me"),
            updated_fields: RareList::default(),
        };
        let metadata = Metadata { description: Text::given("x".repeat(bytes)), ..Metadata::default() };
        Network { meta, spec: NetworkSpec { metadata, ..crate::fixtures::network("blue") } }
    }

    #[test]
    fn a_row_of_the_largest_size_is_written() {
        let around = encode(&network(ROW_BYTES_MAX)).len() - ROW_BYTES_MAX;
        let mut table = Table::default();
        table.put(7.into(), network(ROW_BYTES_MAX - around), &mut Ledger::default());
        assert_eq!(table.encoded(7.into()).unwrap().len(), ROW_BYTES_MAX);
    }

    #[test]
    fn a_value_that_cannot_be_encoded_breaks_an_invariant() {
        struct Refused;
        impl Serialize for Refused {
            fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
                Err(serde::ser::Error::custom("refused"))
            }
        }
        assert_eq!(Broken::catch(|| encode(&Refused)).unwrap_err().invariant, ENCODING);
    }

    #[test]
    fn a_larger_row_breaks_an_invariant() {
        let put = || Table::default().put(7.into(), network(ROW_BYTES_MAX), &mut Ledger::default());
        let payload = std::panic::catch_unwind(put).unwrap_err();
        assert_eq!(payload.downcast_ref::<Broken>().unwrap().invariant, ROW_SIZE);
    }
}
