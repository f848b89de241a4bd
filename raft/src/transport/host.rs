//! The side above the transport: what it asks of the member that peers call.

use std::future::Future;

use super::message::{Answer, Request};
use super::preface::{Handshake, Hello, Refusal};
use super::snapshot::SnapshotHead;
use crate::store::IncomingSnapshot;
use crate::types::Types;

/// The member that peers call: what the transport asks of the storey above.
pub(crate) trait Host: Clone + Send + Sync + 'static {
    /// This member.
    fn hello(&self) -> Hello;

    /// Admits or refuses the caller; waits until it can be served.
    fn admit(&self, handshake: &Handshake) -> impl Future<Output = Result<(), Refusal>> + Send;

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
