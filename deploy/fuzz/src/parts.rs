//! Division of an input into parts, for targets with several inputs.

use ipam_machine::RowKey;

/// First byte, as the choice of a reader, and the rest.
#[must_use]
pub fn choice(data: &[u8]) -> (u8, &[u8]) {
    data.split_first().map_or((0, data), |(first, rest)| (*first, rest))
}

/// Parts: a tag, two bytes of length, and the contents, truncated at the end.
#[must_use]
pub fn parts(mut data: &[u8]) -> Vec<(u8, &[u8])> {
    let mut parts = Vec::new();
    while let Some(([tag, high, low], rest)) = data.split_first_chunk::<3>() {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let (part, rest) = rest.split_at(length.min(rest.len()));
        parts.push((*tag, part));
        data = rest;
    }
    parts
}

/// Joins parts into an input: the reverse of [`parts`].
#[must_use]
pub fn joined<'a>(parts: impl IntoIterator<Item = (u8, &'a [u8])>) -> Vec<u8> {
    let mut data = Vec::new();
    for (tag, part) in parts {
        data.push(tag);
        data.extend_from_slice(&u16::try_from(part.len()).unwrap_or(u16::MAX).to_be_bytes());
        data.extend_from_slice(part);
    }
    data
}

/// Rows: the tag is the table; the id comes first, in eight bytes.
#[must_use]
pub fn rows(data: &[u8]) -> Vec<(RowKey, Vec<u8>)> {
    let row = |(table, part): (u8, &[u8])| {
        let (id, row) = part.split_first_chunk::<8>()?;
        Some((RowKey { table, id: u64::from_be_bytes(*id) }, row.to_vec()))
    };
    parts(data).into_iter().filter_map(row).collect()
}

/// Joins rows into an input: the reverse of [`rows`].
#[must_use]
pub fn joined_rows(rows: &[(RowKey, Vec<u8>)]) -> Vec<u8> {
    let body = |key: &RowKey, row: &[u8]| [key.id.to_be_bytes().as_slice(), row].concat();
    let bodies: Vec<(u8, Vec<u8>)> = rows.iter().map(|(key, row)| (key.table, body(key, row))).collect();
    joined(bodies.iter().map(|(table, body)| (*table, body.as_slice())))
}
