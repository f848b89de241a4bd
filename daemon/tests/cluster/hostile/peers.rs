//! Strangers on the port of members, with every certificate but the right one.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use super::others_are_served;
use crate::support::ask::put;
use crate::support::tls::{Ca, Holder, connect};
use crate::support::{Cluster, LONG};

/// First frame of a caller in postcard: its identity and its purpose.
enum Opening<'a> {
    /// To know who is there.
    Hello,
    /// To speak as the member of this name and id.
    Member { cluster_id: &'a str, name: &'a str, id: u8 },
}

impl Opening<'_> {
    /// The first frame of a connection.
    fn frame(&self) -> Vec<u8> {
        let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
        let party = |name: &str, id: u8| [text(name), vec![id], text("disk")].concat();
        let opening = match self {
            Self::Hello => vec![0],
            Self::Member { cluster_id, name, id } => {
                let control = vec![1];
                [vec![1], text(cluster_id), party(name, *id), party("n1", 1), text("https://x"), control]
                    .concat()
            }
        };
        let length = u8::try_from(opening.len()).unwrap();
        // The version of frames, the magic, the version of the protocol.
        let body = [&b"\x01ipamd-pr\x01"[..], &[length], &opening].concat();
        [&u32::try_from(body.len()).unwrap().to_be_bytes()[..], &body].concat()
    }
}

/// Response of a member: its kind (a name, a welcome, a refusal), and its text.
async fn answer(
    cluster: &Cluster,
    ca: &Path,
    holder: Option<&Holder>,
    opening: &Opening<'_>,
) -> Option<(u8, String)> {
    let asked = async {
        let name = "n1.member.ipamd.internal";
        let mut stream = connect(cluster.members[0].peer, name, ca, holder).await.ok()?;
        stream.write_all(&opening.frame()).await.ok()?;
        let mut answer = Vec::new();
        // A hello is answered and hung up on; so is a refusal.
        let _ = stream.read_to_end(&mut answer).await;
        let words = String::from_utf8_lossy(&answer).into_owned();
        Some((*answer.get(5)?, words))
    };
    timeout(LONG, asked).await.expect("it neither answers nor hangs up")
}

const NAME: u8 = 0;
const REFUSAL: u8 = 2;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn red_team_a_member_of_another_cluster_is_refused_by_its_ca() {
    let (cluster, ca) = Cluster::secure_calm(3);
    let cluster = cluster.all_up().await;
    let before = cluster.shown(0).await;
    let theirs = Ca::new(cluster.dir.path().join("theirs"));
    let good = cluster.members[1].tls.clone().unwrap();
    let hello = answer(&cluster, &ca.certificate(), Some(&good), &Opening::Hello).await;
    assert_eq!(hello.expect("members are answered").0, NAME);
    let forged = Opening::Member { cluster_id: &before.id, name: "n2", id: 2 };
    for holder in [Some(theirs.member("n2", "127.0.0.1")), Some(ca.expired("n2.member.ipamd.internal")), None]
    {
        for opening in [&Opening::Hello, &forged] {
            let printed = answer(&cluster, &ca.certificate(), holder.as_ref(), opening).await;
            assert_eq!(printed, None, "{holder:?}");
        }
    }
    others_are_served(&cluster).await;
    assert_eq!(cluster.shown(0).await.term, before.term, "the leader stays");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn red_team_a_node_or_client_cant_pass_on_requests_as_a_member() {
    let (cluster, ca) = Cluster::secure_calm(3);
    let cluster = cluster.all_up().await;
    let before = cluster.shown(0).await;
    let forged = Opening::Member { cluster_id: &before.id, name: "n2", id: 2 };
    for holder in [ca.node("default", "n2"), ca.client("n2")] {
        for opening in [&Opening::Hello, &forged] {
            let (kind, words) =
                answer(&cluster, &ca.certificate(), Some(&holder), opening).await.expect("a refusal");
            assert_eq!(kind, REFUSAL, "{words}");
            assert!(words.contains("only members are answered"), "{words}");
            assert!(!words.contains(&before.id), "it learns nothing");
        }
    }
    others_are_served(&cluster).await;
    assert_eq!(cluster.shown(0).await.term, before.term);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn red_team_a_member_cant_speak_in_anothers_name() {
    let (cluster, ca) = Cluster::secure_calm(3);
    let cluster = cluster.all_up().await;
    let before = cluster.shown(0).await;
    let forged = Opening::Member { cluster_id: &before.id, name: "n2", id: 2 };
    let third = cluster.members[2].tls.clone().unwrap();
    let (kind, words) = answer(&cluster, &ca.certificate(), Some(&third), &forged).await.expect("a refusal");
    assert_eq!(kind, REFUSAL, "{words}");
    assert!(words.contains("that of member n3"), "{words}");
    others_are_served(&cluster).await;
    assert_eq!(cluster.shown(0).await.term, before.term);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn red_team_peers_without_tls_get_no_word_from_a_member_with_it() {
    let (cluster, _ca) = Cluster::secure_calm(3);
    let cluster = cluster.all_up().await;
    let before = cluster.shown(0).await;
    let mut silent = Vec::new();
    for member in &cluster.members {
        for bytes in
            [Opening::Hello.frame(), b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n".to_vec(), vec![0xff; 4096]]
        {
            let mut stream = TcpStream::connect(member.peer).await.unwrap();
            stream.write_all(&bytes).await.unwrap();
            let mut answer = Vec::new();
            let _ = timeout(LONG, stream.read_to_end(&mut answer)).await.expect("it doesn't hang up");
            // At most an alert of TLS.
            assert!(answer.is_empty() || answer[0] == 21, "{answer:?}");
        }
        for _ in 0..100 {
            silent.push(TcpStream::connect(member.peer).await.unwrap());
        }
    }
    others_are_served(&cluster).await;
    // The election timeout is long: only a write shows that the members still reach each other.
    put(&cluster.ask(), "networks", json!({"name": "lab"})).await;
    let after = cluster.settled().await;
    assert_eq!(after.term, before.term, "silent connections separate no members");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn red_team_callers_that_say_nothing_keep_no_member_from_coming_back() {
    let (cluster, _ca) = Cluster::secure(3);
    let mut cluster = cluster.all_up().await;
    let ports = [cluster.members[0].peer, cluster.members[1].peer];
    let (stop, mut stopped) = tokio::sync::watch::channel(false);
    // Closed connections are replaced at once: there are never fewer than a member has places.
    let silent = (0..600).map(|at| {
        let (port, mut stopped) = (ports[at % 2], stopped.clone());
        async move {
            while !*stopped.borrow_and_update() {
                let socket = TcpSocket::new_v4().unwrap();
                socket.bind("127.9.9.9:0".parse().unwrap()).unwrap();
                let Ok(mut stream) = socket.connect(port).await else { continue };
                let mut byte = [0];
                tokio::select! {
                    _ = stream.read(&mut byte) => {}
                    _ = stopped.changed() => {}
                }
                // Otherwise refused connections would only keep this machine busy.
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    });
    let silent = tokio::spawn(futures::future::join_all(silent.map(tokio::spawn)));
    cluster.members[2].kill();
    cluster.start(2);
    cluster.ready().await;
    cluster.settled().await;
    stop.send(true).unwrap();
    assert!(stopped.changed().await.is_ok());
    timeout(LONG, silent).await.unwrap().unwrap();
}
