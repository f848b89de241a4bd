//! Rendered files, read by the tools that they are for.
