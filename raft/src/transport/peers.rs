//! Connections to the other members, and the addresses of these members.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ipam_api::limits::PEER_CONNECT_MS_MAX;
use openraft::errors::StreamingError;
use openraft::raft::SnapshotResponse;
use openraft::type_config::alias::SnapshotOf;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::timeout;

use super::channel::Channel;
use super::complaints::Complaints;
use super::port::{PeerProof, dial};
use super::preface::{DialError, Handshake, Hello, PeerIdentity, Purpose, Refusal, ask_hello, present};
use super::snapshot;
use super::stream::PeerStream;
use crate::rate_limit::RateLimit;
use crate::store::SnapshotFile;
use crate::sync::held;
use crate::types::{Member, Types, Vote};

/// Requests name and standing of the member at an address, once the member has proved its identity.
pub(crate) async fn hello_at(name: &str, address: &str, proof: &PeerProof) -> Result<Hello, DialError> {
    let asked = async { ask_hello(&mut dial(name, address, proof).await?).await };
    match timeout(Duration::from_millis(PEER_CONNECT_MS_MAX), asked).await {
        Ok(hello) => hello,
        Err(_) => Err(DialError::Broken(std::io::ErrorKind::TimedOut.into())),
    }
}

/// Data of this member that its connections to peers need.
#[derive(Debug)]
pub(crate) struct Own {
    pub(crate) cluster_id: String,
    pub(crate) me: PeerIdentity,
    pub(crate) client_url: String,
    /// Peer address that this member advertises.
    pub(crate) peer_address: String,
    /// Addresses of members by name from this member's configuration; for others the membership's are used.
    pub(crate) addresses: BTreeMap<String, String>,
    pub(crate) proof: PeerProof,
    /// Pace at which snapshots are sent.
    pub(crate) snapshot_bytes_per_second: u64,
}

/// Knowledge that all connections to peers share.
#[derive(Debug)]
struct AddressBook {
    own: Own,
    /// Addresses for peers that callers reported, by id.
    told: Mutex<BTreeMap<u64, String>>,
    /// Number of failed attempts by member id, which selects the next address of the member.
    turns: Mutex<BTreeMap<u64, usize>>,
    /// Reason of the removal of this member, once another member has reported it.
    removed: watch::Sender<Option<String>>,
    complaints: Complaints,
}

type Channels = BTreeMap<(u64, Purpose), (Member, Arc<Channel>)>;

/// The connections to all peers. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Peers {
    address_book: Arc<AddressBook>,
    channels: Arc<Mutex<Channels>>,
    /// Runtime of the connections. Callers on other runtimes need them, too.
    runtime: Handle,
}

impl Peers {
    /// No connection yet. Connections will run on the runtime of this call.
    pub(crate) fn new(own: Own) -> Self {
        let (told, turns, removed) = (Mutex::default(), Mutex::default(), watch::Sender::default());
        let address_book = AddressBook { own, told, turns, removed, complaints: Complaints::default() };
        Self { address_book: Arc::new(address_book), channels: Arc::default(), runtime: Handle::current() }
    }

    /// Records the address for peers that a member reports.
    pub(crate) fn learn(&self, member_id: u64, peer_address: String) {
        held(&self.address_book.told).insert(member_id, peer_address);
    }

    /// Returns the last peer address that a member reported; none if it hasn't called since the start.
    pub(crate) fn told(&self, member_id: u64) -> Option<String> {
        held(&self.address_book.told).get(&member_id).cloned()
    }

    /// Returns the reason of this member's removal, once another member has reported it.
    pub(crate) fn removed(&self) -> watch::Receiver<Option<String>> {
        self.address_book.removed.subscribe()
    }

    /// The id of this member.
    pub(crate) fn my_id(&self) -> u64 {
        self.address_book.own.me.member_id
    }

    /// Persistent connection to a member. A member whose record has changed gets a new one.
    pub(crate) fn channel(&self, member_id: u64, member: &Member, purpose: Purpose) -> Arc<Channel> {
        let mut channels = held(&self.channels);
        if let Some((known, channel)) = channels.get(&(member_id, purpose))
            && known == member
        {
            return channel.clone();
        }
        let channel = Arc::new(Channel::new(self.target(member_id, member, purpose), &self.runtime));
        channels.insert((member_id, purpose), (member.clone(), channel.clone()));
        channel
    }

    /// A member and how to reach it.
    fn target(&self, member_id: u64, member: &Member, purpose: Purpose) -> Target {
        Target { address_book: self.address_book.clone(), member_id, member: member.clone(), purpose }
    }

    /// Sends a snapshot to a member, and waits until the member has installed it.
    pub(crate) async fn send_snapshot(
        &self,
        member_id: u64,
        member: &Member,
        vote: Vote,
        snapshot: SnapshotOf<Types, SnapshotFile>,
        patience: Duration,
    ) -> Result<SnapshotResponse<Types>, StreamingError<Types>> {
        let target = self.target(member_id, member, Purpose::Snapshot);
        let rate_limit = RateLimit::new(self.address_book.own.snapshot_bytes_per_second);
        snapshot::send(&target, vote, snapshot, rate_limit, patience).await
    }

    /// The address at which a member is called next.
    pub(crate) fn address(&self, member_id: u64, member: &Member) -> String {
        self.address_book.address(member_id, member).1
    }

    /// Closes all connections.
    pub(crate) fn close(&self) {
        held(&self.channels).clear();
    }
}

impl AddressBook {
    /// Present attempt and its address. Candidates are the address in the configuration, the last report of
    /// the member, and the membership; any of these may be out of date.
    fn address(&self, member_id: u64, member: &Member) -> (usize, String) {
        let configured = self.own.addresses.get(&member.name).cloned();
        let told = held(&self.told).get(&member_id).cloned();
        let mut all: Vec<String> = configured.into_iter().chain(told).collect();
        if !all.contains(&member.peer_address) {
            all.push(member.peer_address.clone());
        }
        let turn = held(&self.turns).get(&member_id).copied().unwrap_or_default();
        let at = turn % all.len().max(1);
        (turn, all.into_iter().nth(at).unwrap_or_default())
    }

    /// Selects the next address, unless another connection of the member already has.
    fn turn_over(&self, member_id: u64, tried: usize) {
        let mut turns = held(&self.turns);
        let turn = turns.entry(member_id).or_default();
        if *turn == tried {
            *turn = tried.wrapping_add(1);
        }
    }
}

/// Guard that selects the next address when it is dropped, unless the attempt succeeded.
struct Defer<'a>(Option<(&'a AddressBook, u64, usize)>);

impl Defer<'_> {
    fn forget(mut self) {
        self.0 = None;
    }
}

impl Drop for Defer<'_> {
    fn drop(&mut self) {
        if let Some((address_book, member_id, turn)) = self.0 {
            address_book.turn_over(member_id, turn);
        }
    }
}

/// Peer and the purpose of the connection.
#[derive(Clone)]
pub(super) struct Target {
    address_book: Arc<AddressBook>,
    member_id: u64,
    member: Member,
    purpose: Purpose,
}

impl Target {
    /// Connects, with a handshake that verifies both sides.
    pub(super) async fn connect(&self) -> Result<PeerStream, DialError> {
        let (turn, address) = self.address_book.address(self.member_id, &self.member);
        // The guard covers a cancelled attempt, too.
        let next = Defer(Some((&self.address_book, self.member_id, turn)));
        let stream = self.connect_to(&address).await?;
        next.forget();
        Ok(stream)
    }

    async fn connect_to(&self, address: &str) -> Result<PeerStream, DialError> {
        let mut stream = dial(&self.member.name, address, &self.address_book.own.proof).await?;
        let handshake = Handshake {
            cluster_id: self.address_book.own.cluster_id.clone(),
            from: self.address_book.own.me.clone(),
            to: PeerIdentity {
                name: self.member.name.clone(),
                member_id: self.member_id,
                disk_id: self.member.disk_id.clone(),
            },
            client_url: self.address_book.own.client_url.clone(),
            purpose: self.purpose,
            // A member with a closed port has no address.
            peer_address: Some(self.address_book.own.peer_address.clone())
                .filter(|address| !address.is_empty()),
        };
        match present(&mut stream, handshake).await {
            Ok(()) => Ok(stream),
            Err(refused) => {
                if let DialError::Refused(Refusal::Removed { why }) = &refused {
                    self.address_book.removed.send_replace(Some(why.clone()));
                }
                Err(refused)
            }
        }
    }

    /// Logs that the peer answers again, if it didn't.
    pub(super) fn note_connected(&self) {
        if self.address_book.complaints.settle(&self.label()) {
            tracing::info!(peer = %self.member.name, purpose = ?self.purpose, "the peer answers again");
        }
    }

    /// Logs why there is no connection to the peer.
    pub(super) fn note_failed(&self, why: &str) {
        if let Some(left_out) = self.address_book.complaints.news(&self.label(), why) {
            let (_, address) = self.address_book.address(self.member_id, &self.member);
            let (peer, purpose) = (&self.member.name, self.purpose);
            tracing::warn!(%peer, address, ?purpose, why, left_out, "no connection");
        }
    }

    fn label(&self) -> String {
        format!("{} {:?}", self.member_id, self.purpose)
    }
}
