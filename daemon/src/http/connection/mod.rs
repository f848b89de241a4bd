//! Connections: accepting, TLS, time limits, and what is answered before a handler is reached.

pub(super) mod head;
mod reject;
pub mod server;
pub mod starting;
mod stream;
pub mod tls;
