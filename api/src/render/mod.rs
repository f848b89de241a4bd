//! Configuration files of host network managers, rendered from the addresses of an endpoint.
//!
//! Pure: it reads no host and writes no file. One source file per format.

mod file;
mod format;

pub use file::{RenderError, RenderedFile};
pub use format::{Format, render};
