//! Both ends of the transport, with a host whose answers the test defines.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ipam_api::limits::FRAME_BYTES_MAX;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::channel::Channel;
use super::frame::encode;
use super::port::dial;
use super::preface::present;
use super::stream::PeerStream;
use super::*;
use crate::socket::PrivateSocket;
use crate::store::IncomingSnapshot;
use crate::types::{Member, Types, Vote};
use ipam_machine::command::{Cause, Pending as Waits, Text};
use ipam_machine::event::WaitReason;
use ipam_machine::{Action, Applied, fixtures};

pub(super) const LONG: Duration = Duration::from_secs(20);

/// Host that answers read indexes late, votes never, and everything else at once. Admits callers with the
/// right disk id.
#[derive(Clone, Default)]
pub(super) struct FakeHost {
    /// Number of connections that their callers closed.
    closed: watch::Sender<usize>,
}

impl Host for FakeHost {
    fn hello(&self) -> Hello {
        let member = Member {
            name: "n2".to_owned(),
            disk_id: "disk".to_owned(),
            peer_address: "here".to_owned(),
            client_url: "http://n2".to_owned(),
        };
        Hello { member, standing: Standing::Founding { cluster_id: "c".to_owned() } }
    }

    async fn admit(&self, handshake: &Handshake) -> Result<(), Refusal> {
        match &handshake.to {
            to if to.disk_id == "disk" => Ok(()),
            to => {
                Err(Refusal::WrongTarget { mine: PeerIdentity { disk_id: "disk".to_owned(), ..to.clone() } })
            }
        }
    }

    async fn expelled(&self, _: u64) {
        std::future::pending().await
    }

    fn connection_closed(&self, _: u64) {
        self.closed.send_modify(|closed| *closed += 1);
    }

    async fn answer(&self, request: Request) -> Answer {
        match request {
            Request::ReadIndex => {
                sleep(Duration::from_millis(50)).await;
                Answer::ReadIndex(Err(Declined::Unknown))
            }
            Request::Vote(_) => std::future::pending().await,
            Request::Propose { .. } => {
                // One long text, since a test encodes many small things so slowly that the peer seems to be
                // silent.
                let cause = Box::new(Cause::NotMac { mac: Text::given("x".repeat(FRAME_BYTES_MAX)) });
                let why = WaitReason::AllocationFailed;
                let pending = Waits { repeated: false, why, cause, since_wall_ms: 1 };
                let answer = ipam_machine::Answer::Pending(pending);
                Answer::Propose(Ok(Ok(Applied { revision: 1, answer, replayed: false })))
            }
            Request::Members => Answer::Failed("x".repeat(FRAME_BYTES_MAX)),
            _ => Answer::Failed("told so".to_owned()),
        }
    }

    async fn incoming(&self) -> Result<IncomingSnapshot, String> {
        Err("no room".to_owned())
    }

    async fn install(
        &self,
        _: SnapshotHead,
        _: IncomingSnapshot,
    ) -> Result<openraft::raft::SnapshotResponse<Types>, String> {
        Err("no snapshots here".to_owned())
    }
}

fn peers() -> Peers {
    let me = PeerIdentity { name: "n1".to_owned(), member_id: 1, disk_id: "mine".to_owned() };
    peers_of(me, "http://n1", PeerProof::SameUser)
}

/// The peers of a member that calls by the addresses of the membership.
pub(super) fn peers_of(me: PeerIdentity, client_url: &str, proof: PeerProof) -> Peers {
    Peers::new(Own {
        cluster_id: "c".to_owned(),
        me,
        client_url: client_url.to_owned(),
        peer_address: "n1:7441".to_owned(),
        addresses: BTreeMap::new(),
        proof,
        snapshot_bytes_per_second: u64::MAX,
    })
}

pub(super) fn member(peer_address: String, disk_id: &str) -> Member {
    Member { name: "n2".to_owned(), disk_id: disk_id.to_owned(), peer_address, client_url: String::new() }
}

/// A directory that only its owner may enter.
pub(super) fn private() -> TempDir {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    tempfile::Builder::new().permissions(mode).tempdir().unwrap()
}

/// The address of the socket in a directory.
fn address(dir: &TempDir) -> String {
    format!("unix:{}", dir.path().join("s").display())
}

/// Serves the socket in a directory.
async fn serve_in(dir: &TempDir) -> JoinHandle<()> {
    serve_as(FakeHost::default(), dir).await
}

async fn serve_as(host: FakeHost, dir: &TempDir) -> JoinHandle<()> {
    let socket = PrivateSocket::bind(&dir.path().join("s")).await.unwrap();
    tokio::spawn(serve(PeerPort::Socket(socket), host))
}

/// Connects as a third member that sends bytes of its own.
async fn connect(dir: &TempDir, purpose: Purpose) -> PeerStream {
    let identity = |name: &str, member_id, disk: &str| PeerIdentity {
        name: name.to_owned(),
        member_id,
        disk_id: disk.to_owned(),
    };
    let handshake = Handshake {
        cluster_id: "c".to_owned(),
        from: identity("n3", 3, "its"),
        to: identity("n2", 2, "disk"),
        client_url: "http://n3".to_owned(),
        purpose,
        peer_address: None,
    };
    let mut stream = dial("n2", &address(dir), &PeerProof::SameUser).await.unwrap();
    present(&mut stream, handshake).await.unwrap();
    stream
}

/// Sends bytes, and waits until the other side closes the connection without an answer.
async fn send_in_vain(stream: &mut PeerStream, bytes: &[u8]) {
    stream.write_all(bytes).await.unwrap();
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(LONG, stream.read_to_end(&mut rest)).await.unwrap();
    assert!(ended.is_err() || rest.is_empty());
}

/// A served port, and a channel to it.
async fn served(disk_id: &str, purpose: Purpose) -> (TempDir, JoinHandle<()>, Arc<Channel>) {
    let dir = private();
    let server = serve_in(&dir).await;
    let channel = peers().channel(2, &member(address(&dir), disk_id), purpose);
    (dir, server, channel)
}

fn vote() -> Request {
    Request::Vote(openraft::raft::VoteRequest::new(Vote::new(1, 1), None))
}

fn soon() -> Instant {
    Instant::now() + Duration::from_millis(100)
}

fn pre_vote() -> Request {
    Request::PreVote(openraft::raft::VoteRequest::new(Vote::new(1, 1), None))
}

pub(super) fn late() -> Instant {
    Instant::now() + LONG
}

#[tokio::test]
async fn a_connection_runs_on_the_runtime_of_the_peers_and_not_of_its_first_caller() {
    let dir = private();
    let _server = serve_in(&dir).await;
    let (peers, member) = (peers(), member(address(&dir), "disk"));
    let first = std::thread::spawn(move || {
        let other = tokio::runtime::Builder::new_current_thread().build().unwrap();
        other.block_on(async { peers.channel(2, &member, Purpose::Control) })
    });
    let channel = first.join().unwrap();
    let answer = channel.call(pre_vote(), late()).await.unwrap();
    assert!(matches!(answer, Answer::Failed(why) if why == "told so"));
}

#[tokio::test]
async fn answers_find_their_callers_in_whatever_order_they_come() {
    let (_dir, _server, channel) = served("disk", Purpose::Control).await;
    let mut slow = channel.submit(Request::ReadIndex).unwrap();
    let fast = channel.call(pre_vote(), late()).await.unwrap();
    assert!(matches!(fast, Answer::Failed(why) if why == "told so"));
    let slow = slow.wait(late()).await.unwrap();
    assert!(matches!(slow, Answer::ReadIndex(Err(Declined::Unknown))));
}

#[tokio::test]
async fn on_the_append_connection_the_order_is_kept() {
    let (_dir, _server, channel) = served("disk", Purpose::Append).await;
    let begun = Instant::now();
    let mut first = channel.submit(Request::ReadIndex).unwrap();
    let mut second = channel.submit(pre_vote()).unwrap();
    second.wait(late()).await.unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(50), "it came after the first");
    first.wait(Instant::now() + Duration::from_millis(1)).await.unwrap();
}

#[tokio::test]
async fn a_wrong_member_refuses_the_handshake_and_nothing_is_sent() {
    let (_dir, _server, channel) = served("another disk", Purpose::Control).await;
    let Err(CallError::NotSent(why)) = channel.call(pre_vote(), late()).await else {
        panic!("it was let in")
    };
    assert!(why.contains("another member answers there: n2 (member 2, disk disk)"), "{why}");
}

#[tokio::test]
async fn a_call_cancelled_before_sending_is_known_to_be_unsent() {
    // No listener at the address.
    let dir = private();
    let channel = peers().channel(2, &member(address(&dir), "disk"), Purpose::Control);
    assert!(matches!(channel.call(pre_vote(), late()).await, Err(CallError::NotSent(_))));
    // A listener that accepts the connection and stays silent.
    let _listener = UnixListener::bind(dir.path().join("s")).unwrap();
    let channel = peers().channel(2, &member(address(&dir), "disk"), Purpose::Control);
    assert!(matches!(channel.call(pre_vote(), soon()).await, Err(CallError::NotSent(_))));
}

#[tokio::test]
async fn a_call_without_an_answer_has_an_unknown_outcome() {
    let (_dir, server, channel) = served("disk", Purpose::Control).await;
    channel.call(pre_vote(), late()).await.unwrap();
    assert!(matches!(channel.call(vote(), soon()).await, Err(CallError::TimedOut)));
    let mut pending = channel.submit(vote()).unwrap();
    // The answer follows the vote, since both use the same connection.
    channel.call(pre_vote(), late()).await.unwrap();
    server.abort();
    assert!(matches!(pending.wait(late()).await, Err(CallError::Lost(_))));
    assert!(matches!(channel.call(pre_vote(), late()).await, Err(CallError::NotSent(_))));
}

#[tokio::test]
async fn a_peer_that_comes_back_is_found_again() {
    let (dir, server, channel) = served("disk", Purpose::Control).await;
    channel.call(pre_vote(), late()).await.unwrap();
    server.abort();
    let _ = server.await;
    let _server = serve_in(&dir).await;
    let begun = Instant::now();
    while channel.call(pre_vote(), late()).await.is_err() {
        assert!(begun.elapsed() < LONG);
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn any_caller_may_ask_for_the_members_identity() {
    let (dir, _server, _) = served("disk", Purpose::Control).await;
    assert_eq!(
        hello_at("n2", &address(&dir), &PeerProof::SameUser).await.unwrap(),
        FakeHost::default().hello()
    );
}

#[tokio::test]
async fn nonsense_ends_a_connection_and_no_other() {
    let (dir, _server, channel) = served("disk", Purpose::Control).await;
    channel.call(pre_vote(), late()).await.unwrap();
    for nonsense in [encode(&"no request").unwrap(), vec![0xff; 16], vec![0, 0, 0, 1, 99]] {
        send_in_vain(&mut connect(&dir, Purpose::Control).await, &nonsense).await;
    }
    channel.call(pre_vote(), late()).await.unwrap();
}

#[tokio::test]
async fn only_connections_that_a_leader_keeps_and_that_it_closes_count_as_closed() {
    let (dir, host) = (private(), FakeHost::default());
    let mut closed = host.closed.subscribe();
    let _server = serve_as(host, &dir).await;
    // Another purpose, a protocol violation, and a connection that a newer one replaces don't count.
    drop(connect(&dir, Purpose::Journal).await);
    send_in_vain(&mut connect(&dir, Purpose::Append).await, &[0, 0, 0, 1, 99]).await;
    let _replaced = connect(&dir, Purpose::Append).await;
    drop(connect(&dir, Purpose::Append).await);
    closed.wait_for(|closed| *closed > 0).await.unwrap();
    // A process can end within a frame.
    connect(&dir, Purpose::Append).await.write_all(&[0, 0, 0, 9, 1]).await.unwrap();
    closed.wait_for(|closed| *closed > 1).await.unwrap();
    drop(connect(&dir, Purpose::Control).await);
    closed.wait_for(|closed| *closed > 2).await.unwrap();
    assert_eq!(*closed.borrow(), 3);
}

fn proposal() -> Request {
    let command = fixtures::command(Action::Expire);
    Request::Propose { command: Box::new(command), budget_ms: 1000 }
}

/// Encoding takes long on a busy machine. A second thread sends pings meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_is_too_large_is_refused_to_its_caller_alone() {
    let (_dir, _server, channel) = served("disk", Purpose::Control).await;
    let mut other = channel.submit(Request::ReadIndex).unwrap();
    let too_large = channel.call(proposal(), late()).await.unwrap();
    let Answer::Propose(Err(Declined::TooLarge { bytes })) = too_large else { panic!("it was sent") };
    assert!(bytes > FRAME_BYTES_MAX as u64);
    let failed = channel.call(Request::Members, late()).await.unwrap();
    assert!(matches!(failed, Answer::Failed(why) if why.contains("a frame at most")));
    // Other requests on the same connection, before and after.
    assert!(matches!(other.wait(late()).await.unwrap(), Answer::ReadIndex(Err(Declined::Unknown))));
    channel.call(pre_vote(), late()).await.unwrap();
}
