//! Interface of the layer above the transport: the calls that peers may make on the member.

use std::future::Future;

use super::message::{Answer, Request};
use super::preface::{Handshake, Hello, Refusal};
use super::snapshot::SnapshotHead;
use crate::store::IncomingSnapshot;
use crate::types::Types;

/// Member that peers call: the interface of the layer above to the transport.
pub(crate) trait Host: Clone + Send + Sync + 'static {
    /// Returns this member's name and standing.
    fn hello(&self) -> Hello;

    /// Admits or refuses the caller; waits until it can be served.
    fn admit(&self, handshake: &Handshake) -> impl Future<Output = Result<(), Refusal>> + Send;

    /// Completes once the member is removed from the cluster. Its connections are then closed, so that it
    /// reconnects and learns of its removal.
    fn expelled(&self, member_id: u64) -> impl Future<Output = ()> + Send;

    /// Notes that a peer closed a connection for appends or control, as at the end of its process.
    /// Connections that a newer one replaced, that were silent, or whose peer is expelled don't count.
    fn connection_closed(&self, member_id: u64);

    /// Answers a request of an admitted peer.
    fn answer(&self, request: Request) -> impl Future<Output = Answer> + Send;

    /// Creates a file for the snapshot that a peer is about to send.
    fn incoming(&self) -> impl Future<Output = Result<IncomingSnapshot, String>> + Send;

    /// Installs a snapshot that was received completely.
    fn install(
        &self,
        head: SnapshotHead,
        incoming: IncomingSnapshot,
    ) -> impl Future<Output = Result<openraft::raft::SnapshotResponse<Types>, String>> + Send;
}
