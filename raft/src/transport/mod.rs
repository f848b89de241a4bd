//! Peers: who may connect, what is asked and answered, and openraft's network made of it.
//!
//! A member calls every other one over three connections: log entries, control (votes, heartbeats, what is
//! passed on), and snapshots, so that none of them waits behind another. Each opens with a preface in which
//! both sides agree who they are; after that numbered requests and answers travel in frames.
//!
//! **Invariant:** nothing that a peer sends makes this side panic, or reserve memory for bytes that haven't
//! come. What doesn't make sense closes the connection.

mod append;
mod channel;
mod complaints;
mod connection;
mod frame;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod message;
#[cfg(test)]
mod message_tests;
mod network;
mod peers;
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

use std::future::Future;

pub(crate) use append::{Span, check as check_append};
pub(crate) use channel::{CallError, Channel};
pub(crate) use message::{Answer, Append, Declined, NotHandedOver, Report, Request, Said};
pub(crate) use network::Network;
pub(crate) use peers::{Peers, hello_at};
pub(crate) use preface::{Hello, Party, Purpose, Refusal, Standing, Ticket};
pub(crate) use server::serve;
pub(crate) use snapshot::SnapshotHead;
pub(crate) use stage::Stage;
pub use tls::{PeerCredentials, PeerTls};

use crate::store::IncomingSnapshot;
use crate::types::Types;

/// The member that peers call: what the transport asks of the storey above.
pub(crate) trait Host: Clone + Send + Sync + 'static {
    /// Who this is.
    fn hello(&self) -> Hello;

    /// Whether the caller may come in; waits until it can be served.
    fn admit(&self, ticket: &Ticket) -> impl Future<Output = Result<(), Refusal>> + Send;

    /// Ends once the member belongs to the cluster no more: then its connections are closed, so that it asks again
    /// and is told.
    fn expelled(&self, member_id: u64) -> impl Future<Output = ()> + Send;

    /// Answers a request of a peer that was let in.
    fn answer(&self, request: Request) -> impl Future<Output = Answer> + Send;

    /// A file for the snapshot that a peer is about to send.
    fn incoming(&self) -> impl Future<Output = Result<IncomingSnapshot, String>> + Send;

    /// Takes the state from a snapshot that has come whole.
    fn install(
        &self,
        head: SnapshotHead,
        incoming: IncomingSnapshot,
    ) -> impl Future<Output = Result<openraft::raft::SnapshotResponse<Types>, String>> + Send;
}
