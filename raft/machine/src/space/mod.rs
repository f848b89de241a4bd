//! Address space: free addresses and occupancy of pools.

pub mod free_set;
pub mod occupancy;

pub use occupancy::*;
