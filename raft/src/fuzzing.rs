//! Access for the fuzz targets of `deploy/fuzz` to otherwise private readers.
//!
//! Behind a feature of no shipped binary.

pub use crate::store::fuzzing as store;
pub use crate::transport::fuzzing as transport;
