//! Views: explanations, maps and holders, derived from the state and without effect.

pub mod explain;
pub mod holders;
pub mod map;
pub mod skipped;
