//! Requests on a member that stops: another member completes them. Their first copy has no effect after the
//! restart.

use std::net::SocketAddr;

use ipam_api::Code;
use ipam_api::event::EventPage;
use ipam_api::limits::ATTEMPT_MS_FIRST;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};

use crate::support::Cluster;
use crate::support::ask::{addresses, allocations, get, make_pools};
use crate::support::plugin::{Plugin, network};
use crate::support::raw::{Raw, ask, send};

/// Events of allocations.
async fn grants(cluster: &Cluster) -> usize {
    let page: EventPage = get(&cluster.ask(), "/v1/events?limit=1000").await.unwrap();
    page.items.iter().filter(|event| event.event_type == "address.allocated").count()
}

/// Cluster with pools, its leader, and the address of a follower that has forwarded requests to it.
async fn scene() -> (Cluster, usize, SocketAddr) {
    let cluster = Cluster::up(3).await;
    let (leader, follower) = (cluster.leader().await, cluster.follower().await);
    make_pools(&cluster.at(follower)).await;
    let to = cluster.members[follower].client;
    (cluster, leader, to)
}

/// Request for an address of `web` for an attachment.
fn add(container: &str) -> Value {
    let key = json!({"node": "n1", "config": "lan", "container_id": container, "interface": "eth0"});
    json!({
        "endpoint": {"kind": "container", "name": container},
        "attachment": key,
        "started": {"boot_id": "this-boot", "at_us": 100},
        "interfaces": [{"name": "eth0", "ipv4_pools": ["web"]}],
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_at_a_stopped_leader_is_answered_by_the_next_one_while_it_is_stopped() {
    let (cluster, leader, to) = scene().await;
    cluster.members[leader].pause();
    // Sent once, and by no client that would repeat it.
    let body = add("c1");
    let (write, read) = tokio::join!(
        ask(to, "POST", "/v1/allocations", &[], &body),
        ask(to, "GET", "/v1/pools", &[], &Value::Null),
    );
    // The follower repeats the request if its new leader answers slowly. The repetition finds the addresses.
    assert!(matches!(write.status, 200 | 201), "{write:?}");
    assert_eq!(read.status, 200, "{read:?}");
    cluster.members[leader].resume();
    let shown = cluster.settled().await;
    assert!(shown.leader.is_some());
    assert_eq!((grants(&cluster).await, allocations(&cluster.ask()).await.len()), (1, 1));
}

/// Server that holds its first request until the test forwards it to a member. It closes other connections.
struct Holding {
    url: String,
    copies: mpsc::Receiver<Vec<u8>>,
    _end: oneshot::Sender<()>,
}

impl Holding {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (noted, copies) = mpsc::channel(100);
        let (_end, mut ended) = oneshot::channel::<()>();
        tokio::spawn(async move {
            let mut held: Vec<TcpStream> = Vec::new();
            loop {
                tokio::select! {
                    _ = &mut ended => return,
                    accepted = listener.accept() => {
                        let (mut stream, _) = accepted.unwrap();
                        noted.send(read_request(&mut stream).await).await.unwrap();
                        held.push(stream);
                    }
                }
            }
        });
        Self { url, copies, _end }
    }

    /// The one copy that has come, if exactly one has.
    fn copy(&mut self) -> Vec<u8> {
        let copy = self.copies.try_recv().expect("a copy");
        assert!(self.copies.try_recv().is_err(), "a second copy");
        copy
    }
}

/// One request with its body, by its length.
async fn read_request(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).to_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return bytes;
            }
        }
        if stream.read_buf(&mut bytes).await.unwrap() == 0 {
            return bytes;
        }
    }
}

/// Lets a copy go on to a member, on a connection of its own.
async fn resume(copy: &[u8], to: SocketAddr) -> Raw {
    let text = String::from_utf8(copy.to_vec()).unwrap();
    let budget = format!("budget-ms: {ATTEMPT_MS_FIRST}\r\n");
    assert!(text.contains(&budget), "{text}");
    // The budget runs from the arrival at the member. A busy machine may need more of it for an answer.
    let text = text.replace(&budget, "budget-ms: 60000\r\n");
    let (line, rest) = text.split_once("\r\n").unwrap();
    send(to, format!("{line}\r\nconnection: close\r\n{rest}").as_bytes()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abandoned_copy_that_resumes_later_is_harmless() {
    let cluster = Cluster::up(3).await;
    make_pools(&cluster.ask()).await;
    let to = cluster.members[0].client;
    let add = async |container: &str| {
        let mut holding = Holding::start().await;
        let servers = [vec![holding.url.clone()], cluster.urls()[1..].to_vec()].concat();
        let conf = network(&servers, "n1", &["web"]);
        let outcome = Plugin::new("ADD", container, &conf).run().await;
        (outcome.addresses()[0], holding.copy())
    };
    let del = async |container: &str| {
        let conf = network(&cluster.urls(), "n1", &["web"]);
        let outcome = Plugin::new("DEL", container, &conf).run().await;
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
    };

    let (given, copy) = add("lives").await;
    let late = resume(&copy, to).await;
    assert_eq!(late.status, 200, "{late:?}");
    assert_eq!(addresses(&late.json()), [given]);
    assert_eq!(grants(&cluster).await, 1);

    let (_, copy) = add("goes").await;
    del("goes").await;
    let late = resume(&copy, to).await;
    assert_eq!((late.status, late.problem().code), (409, Code::AttachmentReleased), "{late:?}");
    assert_eq!((grants(&cluster).await, allocations(&cluster.ask()).await.len()), (2, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_tells_the_secret_of_a_token_to_the_request_that_made_it() {
    let (cluster, leader, to) = scene().await;
    let make = || async {
        let body = json!({"name": "ci", "role": "viewer"});
        // A busy machine may need longer for the election than the default budget.
        ask(to, "POST", "/v1/tokens", &[("idempotency-key", "once"), ("budget-ms", "60000")], &body).await
    };
    cluster.members[leader].pause();
    let made = make().await;
    cluster.members[leader].resume();
    assert_eq!(made.status, 201, "{made:?}");
    assert!(made.json::<Value>()["secret"].is_string());
    assert!(make().await.json::<Value>()["secret"].is_null());
}
