//! Connections: accepting, TLS, time limits, and what is answered before a handler is reached.

pub(super) mod head;
mod linger;
mod reject;
pub mod server;
pub mod starting;
pub mod tls;
mod write_timeout;
