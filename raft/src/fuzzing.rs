//! Doors for the fuzz targets of `deploy/fuzz`: readers that are private otherwise.
//!
//! Behind a feature that nothing that ships has.

pub use crate::store::fuzzing as store;
pub use crate::transport::fuzzing as transport;
