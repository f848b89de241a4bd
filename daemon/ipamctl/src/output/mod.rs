//! Output: tables for people, data for programs, errors, and the filter for all of them.

pub(crate) mod csv;
pub(crate) mod data;
pub(crate) mod diff;
pub(crate) mod error;
pub(crate) mod file;
pub(crate) mod format;
pub(crate) mod interrupt;
pub(crate) mod json;
pub(crate) mod jsonpath;
pub(crate) mod screen;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod yaml;
