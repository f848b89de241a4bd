//! Common parts of the plugin's tests: the program as a runtime runs it, and a server for it.

#![allow(clippy::result_large_err, reason = "the model answers with the API's own problems")]

pub(crate) mod model;
pub(crate) mod plugin;
pub(crate) mod server;
