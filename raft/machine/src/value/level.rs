//! Feature levels.

/// Level of a new cluster, whatever its members support: no entry records their versions.
pub(crate) const FIRST_LEVEL: u32 = 1;

/// The highest level of this version.
pub(crate) const LEVEL: u32 = 1;
