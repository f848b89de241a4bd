//! Damage: rows that can't be read, or that contradict each other.

/// Rows that can't be read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Damaged(pub String);
