//! A client that requests an event stream and doesn't read it is disconnected; others are unaffected.

use std::net::SocketAddr;

use ipam_api::client::{Call, Client};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::support::{Cluster, LONG, until};

const NETWORKS: usize = 1000;
/// Together more than the system keeps on the way between two processes.
const ROUNDS: usize = 25;

/// Every network in one step, its description different each time, and long.
fn round(number: usize) -> Value {
    let step = |network: usize| {
        let description = format!("round {number} {}", "x".repeat(200));
        json!({"method": "PUT", "path": format!("/v1/networks/n-{network}"),
               "body": {"name": format!("n-{network}"), "description": description}})
    };
    json!({"steps": (0..NETWORKS).map(step).collect::<Vec<_>>()})
}

/// Requests all events, and reads only the head of the response.
async fn ask(to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(16 << 10).unwrap();
    let mut stream = socket.connect(to).await.unwrap();
    let head = "GET /v1/events?after=0 HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut begin = [0; 12];
    stream.read_exact(&mut begin).await.unwrap();
    assert_eq!(&begin, b"HTTP/1.1 200");
    stream
}

/// True if the server's side of a connection is still established.
fn stands(server: SocketAddr, client: SocketAddr) -> bool {
    let hex = |address: SocketAddr| match address {
        SocketAddr::V4(address) => {
            format!("{:08X}:{:04X}", u32::from_ne_bytes(address.ip().octets()), address.port())
        }
        SocketAddr::V6(address) => panic!("{address} is none of these tests'"),
    };
    const ESTABLISHED: &str = "01";
    let (server, client) = (hex(server), hex(client));
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    table.lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().take(4).collect();
        words.get(1..) == Some(&[server.as_str(), client.as_str(), ESTABLISHED])
    })
}

async fn follow(client: &Client, events: usize) {
    let mut stream = client.events("/v1/events?kind=network", Some("0".to_owned()), LONG);
    for _ in 0..events {
        stream.next().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_without_a_reader_is_closed() {
    let cluster = Cluster::up(1).await;
    let (client, to) = (cluster.ask(), cluster.members[0].client);
    let mut idle = ask(to).await;
    let from = idle.local_addr().unwrap();
    assert!(stands(to, from), "what is looked at must be what is meant");
    for number in 0..ROUNDS {
        let call = Call::post("/v1/transactions").json(&round(number)).unwrap().repeatable().within(LONG);
        client.send(call).await.unwrap();
    }
    until("it is hung up on", async || {
        if stands(to, from) { Err("its connection stands".to_owned()) } else { Ok(()) }
    })
    .await;
    // What was on the way still comes, and then the end, long before the last event.
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(LONG, idle.read_to_end(&mut rest)).await;
    assert!(ended.is_ok(), "its connection has no end");
    let seen = String::from_utf8_lossy(&rest).matches("\ndata: ").count();
    assert!(seen > 0 && seen < NETWORKS * ROUNDS, "{seen} events");
    // A reader gets all of it.
    follow(&client, NETWORKS * ROUNDS).await;
}
