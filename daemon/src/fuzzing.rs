//! Access for the fuzz targets of `deploy/fuzz` to otherwise private readers.
//!
//! No shipped binary has the feature that enables this module.

pub use crate::http::fuzzing as http;
