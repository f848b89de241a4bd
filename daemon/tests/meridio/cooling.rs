//! Addresses of released children.

use ipam_api::client::Call;
use serde_json::json;

use super::clients::{Child, Client, IPV4};
use super::trench::Trench;
use crate::support::LONG;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m6_13_a_freed_address_cools_for_others_and_comes_back_to_its_child_at_once() {
    let trench = Trench::plain(1).up().await;
    let (server, client) = (trench.server(0), Client::go());
    trench.conduit("conduit-a").await;
    let child = |name: &str| Child::new("conduit-a", "node-1", name, IPV4);
    let allocate = async |name: &str| client.allocate(&server, &child(name)).await.prefix();
    assert_eq!(allocate("bridge").await, "169.255.0.1/24");
    assert_eq!(allocate("a").await, "169.255.0.2/24");
    assert_eq!(client.release(&server, &child("a")).await.code, "");
    assert_eq!(allocate("b").await, "169.255.0.3/24", "the lowest one cools");
    assert_eq!(allocate("a").await, "169.255.0.2/24", "its child has it back");
    assert_eq!(client.release(&server, &child("a")).await.code, "");
    // The pool's cooling time is a setting of the pool; addresses that cool already keep theirs.
    let short = Call::patch("/v1/pools/default-ipv4").json(&json!({"cooling_ms": 0})).unwrap();
    trench.cluster.ask().send(short.within(LONG)).await.unwrap();
    assert_eq!(client.release(&server, &child("b")).await.code, "");
    assert_eq!(allocate("c").await, "169.255.0.3/24", "nothing cools in this pool any more");
    assert_eq!(allocate("d").await, "169.255.0.4/24");
}
