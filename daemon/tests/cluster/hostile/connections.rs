//! Many connections, slow ones, and silent ones.

use std::net::SocketAddr;
use std::time::Duration;

use ipam_api::limits::{CONNECTIONS_PER_ADDRESS_MAX, HEAD_READ_MS_MAX};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use super::others_are_served;
use crate::support::raw::{parse, request};
use crate::support::{Cluster, LONG};

/// Interval between two bytes of a slow client.
const DRIP: Duration = Duration::from_millis(100);

/// Sends `begin`, then a byte at each interval, until the member hangs up; returns its response.
async fn drip(stream: impl AsyncRead + AsyncWrite + Unpin, begin: &[u8]) -> Vec<u8> {
    let (mut read, mut write) = tokio::io::split(stream);
    write.write_all(begin).await.unwrap();
    let mut answer = Vec::new();
    let dripping = async {
        while write.write_all(b"x").await.is_ok() {
            tokio::time::sleep(DRIP).await;
        }
    };
    let ended = async {
        let _ = read.read_to_end(&mut answer).await;
    };
    let both = async {
        tokio::select! {
            () = dripping => {}
            () = ended => {}
        }
    };
    timeout(LONG, both).await.expect("it is let go on for ever");
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn red_team_a_head_that_never_ends_is_hung_up_on() {
    let cluster = Cluster::up(1).await;
    let to = cluster.members[0].client;
    let slow = (0..50).map(|_| async move {
        let stream = TcpStream::connect(to).await.unwrap();
        drip(stream, b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nx: ").await
    });
    let slow = tokio::spawn(futures::future::join_all(slow));
    while !slow.is_finished() {
        others_are_served(&cluster).await;
        tokio::time::sleep(DRIP).await;
    }
    for answer in slow.await.unwrap() {
        assert!(!answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn red_team_a_body_that_never_ends_is_refused() {
    let cluster = Cluster::up(1).await;
    let to = cluster.members[0].client;
    let begins = [
        request("PUT", "/v1/networks/slow", &[("content-length", "100000")], b"{"),
        request("PUT", "/v1/networks/slow", &[("transfer-encoding", "chunked")], b"ffff\r\n{"),
    ];
    let slow = begins.map(|begin| async move { drip(TcpStream::connect(to).await.unwrap(), &begin).await });
    let slow = tokio::spawn(futures::future::join_all(slow));
    while !slow.is_finished() {
        others_are_served(&cluster).await;
        tokio::time::sleep(DRIP).await;
    }
    for answer in slow.await.unwrap() {
        let answer = parse(&answer).expect("an answer");
        assert_eq!(
            (answer.status, answer.problem().code.to_string().as_str()),
            (408, "too-slow"),
            "{answer:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn red_team_two_thousand_idle_connections_displace_no_other_client() {
    const MANY: usize = 2_000;
    // Each has an end here.
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    let cluster = Cluster::up(1).await;
    let to = cluster.members[0].client;
    let from: SocketAddr = "127.9.9.9:0".parse().unwrap();
    let connect = || async move {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(from).unwrap();
        socket.connect(to).await.unwrap()
    };
    let mut idle = Vec::new();
    for _ in 0..MANY {
        idle.push(connect().await);
    }
    others_are_served(&cluster).await;
    let refused = idle.split_off(CONNECTIONS_PER_ADDRESS_MAX);
    for mut stream in refused {
        let mut answer = Vec::new();
        timeout(LONG, stream.read_to_end(&mut answer)).await.unwrap().unwrap();
        let text = String::from_utf8_lossy(&answer);
        assert!(text.starts_with("HTTP/1.1 503 ") && text.contains("of your address"), "{text}");
    }
    others_are_served(&cluster).await;
    // Earlier connections are closed after a time of silence.
    for mut stream in idle {
        let mut answer = Vec::new();
        let _ = timeout(LONG, stream.read_to_end(&mut answer)).await.expect("it may be idle for ever");
        assert!(answer.is_empty(), "{}", String::from_utf8_lossy(&answer));
    }
    // Then their address is served again.
    let mut stream = connect().await;
    stream.write_all(&request("GET", "/readyz", &[], b"")).await.unwrap();
    let mut answer = Vec::new();
    timeout(LONG, stream.read_to_end(&mut answer)).await.unwrap().unwrap();
    assert_eq!(parse(&answer).unwrap().status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn red_team_a_connection_that_was_used_and_is_idle_is_hung_up_on() {
    let cluster = Cluster::up(1).await;
    let mut stream = TcpStream::connect(cluster.members[0].client).await.unwrap();
    stream.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let limit = Duration::from_millis(HEAD_READ_MS_MAX) + LONG;
    timeout(limit, stream.read_to_end(&mut answer)).await.expect("it may be idle for ever").unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&answer));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn red_team_who_asks_and_never_reads_is_hung_up_on() {
    let cluster = Cluster::up(1).await;
    let mut stream = TcpStream::connect(cluster.members[0].client).await.unwrap();
    // So many responses exceed every buffer between two processes.
    let asks = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(1_000);
    let asking = async { while stream.write_all(&asks).await.is_ok() {} };
    timeout(LONG, asking).await.expect("it is waited for, for ever");
    others_are_served(&cluster).await;
}
