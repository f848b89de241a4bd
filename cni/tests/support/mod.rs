//! What the plugin's tests share: the program as a runtime runs it, and a server for it to ask.

#![allow(dead_code, reason = "each test binary uses its own part")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "these are tests")]
#![allow(clippy::result_large_err, reason = "the model answers with the API's own problems")]

pub(crate) mod model;
pub(crate) mod plugin;
pub(crate) mod server;
