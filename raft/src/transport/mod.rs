//! Peers: admission, requests and responses, and openraft's network on top of them.
//!
//! A member has up to four connections to every other one: log entries, control (votes, heartbeats, forwarded
//! proposals), snapshots, and the journal, so that none of them waits behind another. Each opens with a
//! handshake in which both sides verify their identities; after that requests and responses travel in frames.
//!
//! **Invariant:** nothing that a peer sends makes this side panic, or reserve memory for bytes that haven't
//! arrived. A protocol violation closes the connection.

mod append;
mod channel;
mod complaints;
mod connection;
mod frame;
#[cfg(feature = "testing")]
pub mod fuzzing;
mod host;
mod message;
#[cfg(test)]
mod message_tests;
mod network;
mod peers;
mod port;
#[cfg(test)]
mod port_tests;
mod preface;
mod server;
mod serving;
mod snapshot;
mod stage;
mod stream;
#[cfg(test)]
mod tests;
mod tls;
#[cfg(test)]
mod tls_tests;

pub(crate) use append::{Span, check as check_append};
pub(crate) use channel::{CallError, Channel};
pub(crate) use host::Host;
pub use message::Busy;
pub(crate) use message::{Answer, Append, Declined, NotHandedOver, PeerReport, Report, Request};
pub(crate) use network::Network;
pub(crate) use peers::{Own, Peers, hello_at};
pub use port::PeerPort;
pub(crate) use port::PeerProof;
pub(crate) use preface::{Handshake, Hello, PeerIdentity, Purpose, Refusal, Standing};
pub(crate) use server::serve;
pub(crate) use snapshot::SnapshotHead;
pub(crate) use stage::Stage;
pub use tls::{PeerCredentials, PeerTls};
