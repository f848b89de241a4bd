//! Tests of the store as a whole, and what the tests of its parts share.

mod fixtures;
mod invariants;
pub(crate) mod sample;
mod simulated;
