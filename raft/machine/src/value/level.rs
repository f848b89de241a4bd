//! Feature levels.

/// The level that a cluster begins at, whatever its members know: no entry says what they were founded with.
pub(crate) const FIRST_LEVEL: u32 = 1;

/// The highest level of this version.
pub(crate) const LEVEL: u32 = 1;
