//! Doors for the fuzz targets of `deploy/fuzz`: readers that are private otherwise.
//!
//! Behind a feature that nothing that ships has.

pub use crate::http::fuzzing as http;
