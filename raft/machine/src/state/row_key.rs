//! The key of a row of the state, as the store keeps it.

/// Table and id. As bytes: the table, then the id with its highest byte first, so that rows sort by table
/// and age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowKey {
    /// Number of the table; 0 is the header.
    pub table: u8,
    /// Id of the row in its table.
    pub id: u64,
}

impl RowKey {
    /// Length of the encoded key.
    pub const BYTES: usize = 9;

    /// The key as bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let [a, b, c, d, e, f, g, h] = self.id.to_be_bytes();
        [self.table, a, b, c, d, e, f, g, h]
    }

    /// Decodes a key; `None` for bytes of another length.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (table, id) = bytes.split_first()?;
        Some(Self { table: *table, id: u64::from_be_bytes(id.try_into().ok()?) })
    }
}
