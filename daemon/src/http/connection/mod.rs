//! Connections: accepting, TLS, time limits, and responses without a handler.

mod bind;
pub(super) mod head;
#[cfg(test)]
mod http2_tests;
mod protocols;
mod reject;
mod responses;
pub mod server;
pub mod starting;
mod stream;
pub mod tls;
#[cfg(test)]
mod tls_tests;

pub(crate) use self::bind::{bind_port, bind_socket};
pub use self::protocols::Protocols;
