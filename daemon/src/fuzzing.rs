//! Access for the fuzz targets of `deploy/fuzz` to otherwise private readers.
//!
//! Behind a feature of no shipped binary.

pub use crate::http::fuzzing as http;
