//! Endpoints: their rows, and the claims that wait on them.

pub(crate) mod claims;
pub(crate) mod rows;
