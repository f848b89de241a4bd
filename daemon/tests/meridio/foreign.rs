//! Clients of two independent implementations of gRPC, against real members.

use std::time::Duration;

use serde_json::json;

use super::clients::{Child, Client, IPV4, IPV6, Server};
use super::trench::{SERVER_ID, Trench};
use crate::support::until;

/// Conduits of the clients, and the addresses of their first children.
const CONDUITS: [(&str, &str, &str, &str); 2] = [
    ("conduit-a", "169.255.0.1/24", "169.255.0.2/24", "fd00::1/64"),
    ("conduit-b", "169.255.16.1/24", "169.255.16.2/24", "fd00:0:0:100::1/64"),
];

/// Allocates and releases through each member with both clients, each in a conduit of its own.
async fn both_clients_allocate_and_release(trench: &Trench) {
    for (client, (conduit, bridge, source, wide)) in Client::all().iter().zip(CONDUITS) {
        trench.conduit(conduit).await;
        let of = |name: &str, family| Child::new(conduit, "node-1", name, family);
        let (first, last) = (trench.server(0), trench.server(trench.cluster.members.len() - 1));
        // A repetition has the same answer, from any member.
        for server in [&first, &last, &first] {
            let prefix = client.allocate(server, &of("bridge", IPV4)).await.prefix();
            assert_eq!(prefix, bridge, "{}", client.name);
        }
        assert_eq!(client.allocate(&last, &of("bridge", IPV6)).await.prefix(), wide, "{}", client.name);
        assert_eq!(client.allocate(&first, &of("c1-src", IPV4)).await.prefix(), source, "{}", client.name);
        // A child that is not there is released as well.
        for name in ["c1-src", "c2-src"] {
            let released = client.release(&last, &of(name, IPV4)).await;
            assert_eq!(released.code, "", "{}: {}", client.name, released.text);
        }
        for server in [&first, &last] {
            serving(client, server).await;
            let mut watch = client.send(server, json!({"op": "watch-health", "service": ""})).await;
            assert_eq!(watch.next().await.status, "SERVING", "{}", client.name);
            watch.cancel().await;
            assert_eq!(watch.last().await.code, "CANCELLED", "{}", client.name);
        }
    }
}

/// Waits until a member serves. It judges its contact with a leader at intervals.
async fn serving(client: &Client, server: &Server) {
    until(&format!("{} is told that the member serves", client.name), async || {
        let health = client.health(server, "").await;
        (health.status == "SERVING").then_some(()).ok_or_else(|| format!("{health:?}"))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m6_1_both_foreign_clients_allocate_and_release_over_plaintext() {
    let trench = Trench::plain(3).up().await;
    both_clients_allocate_and_release(&trench).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m6_1_both_foreign_clients_allocate_and_release_over_mutual_tls() {
    let (trench, ca) = Trench::secure(3);
    let trench = trench.up().await;
    both_clients_allocate_and_release(&trench).await;
    let mut server = trench.server(0);
    let child = Child::new("conduit-a", "node-1", "bridge", IPV4);
    // Without TLS, and with a certificate without a SPIFFE id, there is no answer.
    let plain = Server { tls: None, ..server.clone() };
    server.tls = Some(ca.client("operator"));
    for client in Client::all() {
        assert_eq!(client.allocate(&plain, &child).await.code, "UNAVAILABLE", "{}", client.name);
        let refused = client.allocate(&server, &child).await.code;
        assert!(["UNAVAILABLE", "UNAUTHENTICATED"].contains(&refused.as_str()), "{}: {refused}", client.name);
    }
}

/// A proxy of Meridio verifies the SPIFFE id of its server, and no host name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_go_client_verifies_the_spiffe_id_of_its_server() {
    let (trench, _ca) = Trench::secure(1);
    let trench = trench.up().await;
    let client = Client::go();
    let expected = |id: &str| Server { spiffe: Some(id.to_owned()), ..trench.server(0) };
    for id in ["any", SERVER_ID] {
        serving(&client, &expected(id)).await;
    }
    assert_eq!(client.health(&expected("spiffe://example.org/other"), "").await.code, "UNAVAILABLE");
}

/// Go permits a ping each ten seconds. A server that counts pings answers `ENHANCE_YOUR_CALM` to the third.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_go_client_that_pings_every_ten_seconds_without_calls_stays_connected() {
    let trench = Trench::plain(1).up().await;
    let client = Client::go();
    let keepalive = json!({"time_ms": 10_000, "timeout_ms": 5_000, "without_stream": true});
    let hold = json!({"op": "hold", "hold_ms": 25_000, "keepalive": keepalive});
    let held = client.ask(&trench.server(0), hold).await;
    assert_eq!((held.code.as_str(), held.dropped), ("", Vec::new()), "{}", held.text);
}

/// The test above would miss a connection that ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_reports_a_connection_that_ended() {
    let mut trench = Trench::plain(1).up().await;
    let clients = Client::all();
    let server = trench.server(0);
    let hold = json!({"op": "hold", "hold_ms": 5_000, "deadline_ms": 60_000});
    let mut holds = Vec::new();
    for client in &clients {
        // The connection is ready before the hold begins.
        serving(client, &server).await;
        let mut running = client.send(&server, hold.clone()).await;
        assert_eq!(running.within(Duration::from_millis(200)).await, None);
        holds.push(running);
    }
    trench.cluster.kill_all();
    for (client, running) in clients.iter().zip(holds) {
        let held = running.last().await;
        assert!(!held.dropped.is_empty(), "{} saw no end: {held:?}", client.name);
    }
}
