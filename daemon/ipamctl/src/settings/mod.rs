//! Settings of a command: flags that all commands have, the environment, contexts kept in a file, and what follows.

pub(crate) mod config;
pub(crate) mod connection;
pub(crate) mod environment;
pub(crate) mod flags;
pub(crate) mod idempotency;
