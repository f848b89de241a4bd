//! Settings of a command: global flags, the environment, and the contexts of the configuration file.

pub(crate) mod config;
pub(crate) mod connection;
pub(crate) mod environment;
pub(crate) mod flags;
pub(crate) mod idempotency;
