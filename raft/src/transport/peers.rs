//! The other members, as this one reaches them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ipam_api::limits::PEER_CONNECT_MS_MAX;
use openraft::type_config::alias::SnapshotOf;
use tokio::time::timeout;

use super::channel::Channel;
use super::complaints::Complaints;
use super::connection::dial;
use super::preface::{Hello, Party, Purpose, Ticket, Uncalled, ask_hello, present};
use super::snapshot;
use super::stream::PeerStream;
use super::tls::PeerTls;
use crate::pace::Pace;
use crate::store::SnapshotFile;
use crate::types::{Member, Types, Vote};

/// Asks whoever answers at an address who it is; with TLS, only the member of that name.
pub(crate) async fn hello_at(name: &str, address: &str, tls: Option<&PeerTls>) -> Result<Hello, Uncalled> {
    let asked = async { ask_hello(&mut dial(name, address, tls).await?).await };
    match timeout(Duration::from_millis(PEER_CONNECT_MS_MAX), asked).await {
        Ok(hello) => hello,
        Err(_) => Err(Uncalled::Broken(std::io::ErrorKind::TimedOut.into())),
    }
}

/// What every connection to a peer needs to know.
#[derive(Debug)]
struct Book {
    cluster_id: String,
    me: Party,
    client_url: String,
    /// Where members are, by name, as this member's own configuration has it.
    addresses: BTreeMap<String, String>,
    tls: Option<PeerTls>,
    complaints: Complaints,
}

type Channels = BTreeMap<(u64, Purpose), (Member, Arc<Channel>)>;

/// The connections to all peers. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Peers {
    book: Arc<Book>,
    channels: Arc<Mutex<Channels>>,
}

impl Peers {
    /// `addresses` are those of the local configuration, by name; the membership's stand in for the others.
    pub(crate) fn new(
        cluster_id: String,
        me: Party,
        client_url: String,
        addresses: BTreeMap<String, String>,
        tls: Option<PeerTls>,
    ) -> Self {
        let book = Book { cluster_id, me, client_url, addresses, tls, complaints: Complaints::default() };
        Self { book: Arc::new(book), channels: Arc::default() }
    }

    /// Who this member is.
    pub(crate) fn my_id(&self) -> u64 {
        self.book.me.member_id
    }

    /// The lasting connection to a member. A member whose record has changed gets a new one.
    pub(crate) fn channel(&self, member_id: u64, member: &Member, purpose: Purpose) -> Arc<Channel> {
        let mut channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, channel)) = channels.get(&(member_id, purpose))
            && known == member
        {
            return channel.clone();
        }
        let channel = Arc::new(Channel::new(self.target(member_id, member, purpose)));
        channels.insert((member_id, purpose), (member.clone(), channel.clone()));
        channel
    }

    /// A member and how to reach it.
    pub(super) fn target(&self, member_id: u64, member: &Member, purpose: Purpose) -> Target {
        Target { book: self.book.clone(), member_id, member: member.clone(), purpose }
    }

    /// Sends a snapshot to a member that has asked for it, and waits until it is taken.
    pub(crate) async fn send_snapshot(
        &self,
        member_id: u64,
        member: &Member,
        vote: Vote,
        snapshot: SnapshotOf<Types, SnapshotFile>,
        pace: Pace,
        patience: Duration,
    ) -> Result<(), String> {
        let target = self.target(member_id, member, Purpose::Snapshot);
        let sent = snapshot::send(&target, vote, snapshot, pace, patience).await;
        sent.map(drop).map_err(|error| error.to_string())
    }

    /// Where a member answers peers: what this member's configuration says of that name, else what the
    /// membership says.
    pub(crate) fn address<'a>(&'a self, member: &'a Member) -> &'a str {
        self.book.address(member)
    }

    /// Lets go of all connections.
    pub(crate) fn close(&self) {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Book {
    fn address<'a>(&'a self, member: &'a Member) -> &'a str {
        self.addresses.get(&member.name).unwrap_or(&member.peer_address)
    }
}

/// One peer and what is wanted of it.
#[derive(Clone)]
pub(super) struct Target {
    book: Arc<Book>,
    member_id: u64,
    member: Member,
    purpose: Purpose,
}

impl Target {
    /// A connection on which both sides agree who they are.
    pub(super) async fn connect(&self) -> Result<PeerStream, Uncalled> {
        let mut stream =
            dial(&self.member.name, self.book.address(&self.member), self.book.tls.as_ref()).await?;
        let ticket = Ticket {
            cluster_id: self.book.cluster_id.clone(),
            from: self.book.me.clone(),
            to: Party {
                name: self.member.name.clone(),
                member_id: self.member_id,
                disk_id: self.member.disk_id.clone(),
            },
            client_url: self.book.client_url.clone(),
            purpose: self.purpose,
        };
        present(&mut stream, ticket).await?;
        Ok(stream)
    }

    /// Logs that the peer is there again, if it wasn't.
    pub(super) fn note_connected(&self) {
        if self.book.complaints.settle(&self.label()) {
            tracing::info!(peer = %self.member.name, purpose = ?self.purpose, "the peer answers again");
        }
    }

    /// Logs why it isn't.
    pub(super) fn note_failed(&self, why: &str) {
        if self.book.complaints.is_news(&self.label(), why) {
            let address = self.book.address(&self.member);
            tracing::warn!(peer = %self.member.name, address, purpose = ?self.purpose, why, "no connection");
        }
    }

    fn label(&self) -> String {
        format!("{} {:?}", self.member_id, self.purpose)
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.member.name, self.label())
    }
}
