//! Expiry of nodes and children by log time.

use ipam_api::client::Call;
use ipam_api::resource::{Page, Prefix};

use super::clients::{Child, Client, IPV4};
use super::trench::Trench;
use crate::support::{Cluster, LONG, until};

/// Short TTL of nodes and children. The scenarios of the machine have the forty minutes of Meridio.
const TTL: &str = "ttl_ms = 6000";

/// Owners below a node, and the node itself, as `node-1` and `node-1/bridge`.
async fn owners(trench: &Trench) -> Vec<String> {
    let call = Call::get("/v1/prefixes").query("pool", "default-ipv4").within(LONG);
    let page: Page<Prefix> = trench.cluster.ask().call(call).await.unwrap();
    let below = page.items.iter().filter_map(|prefix| prefix.path.strip_prefix("conduit-a/"));
    let mut owners: Vec<String> = below.map(str::to_owned).collect();
    owners.sort();
    owners
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m6_6_a_node_lives_by_its_calls_and_its_bridge_ends_with_it() {
    let trench = Trench::with(Cluster::of(3), None, TTL).up().await;
    let (server, client) = (trench.server(1), Client::go());
    trench.conduit("conduit-a").await;
    let child = |node: &str, name: &str| Child::new("conduit-a", node, name, IPV4);
    for node in ["node-1", "node-2", "node-3"] {
        for name in ["bridge", "x"] {
            client.allocate(&server, &child(node, name)).await.prefix();
        }
    }
    // Node 1 is kept by releases of a child that is not there, and node 2 by allocations of one child.
    until("children end alone, and a node without calls with all below it", async || {
        assert_eq!(client.release(&server, &child("node-1", "never")).await.code, "");
        client.allocate(&server, &child("node-2", "y")).await.prefix();
        let left = owners(&trench).await;
        let expected = ["node-1", "node-1/bridge", "node-2", "node-2/bridge", "node-2/y"];
        (left == expected).then_some(()).ok_or_else(|| format!("{left:?}"))
    })
    .await;
    until("the nodes end with their bridges once nothing refreshes them", async || {
        let left = owners(&trench).await;
        left.is_empty().then_some(()).ok_or_else(|| format!("{left:?}"))
    })
    .await;
    let conduits = Call::get("/v1/prefixes").query("path", "conduit-a").within(LONG);
    let page: Page<Prefix> = trench.cluster.ask().call(conduits).await.unwrap();
    assert_eq!(page.items.len(), 2, "a conduit has no end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m6_7_nothing_ends_while_there_is_no_leader() {
    let mut trench = Trench::with(Cluster::of(3), None, TTL).up().await;
    let client = Client::go();
    trench.conduit("conduit-a").await;
    let child = Child::new("conduit-a", "node-1", "x", IPV4);
    let prefix = client.allocate(&trench.server(0), &child).await.prefix();
    let ids = async |trench: &Trench| {
        let call = Call::get("/v1/prefixes").query("path", "conduit-a/node-1/x").within(LONG);
        let page: Page<Prefix> = trench.cluster.at(0).call(call).await.unwrap();
        page.items.iter().map(|prefix| prefix.id).collect::<Vec<_>>()
    };
    let before = ids(&trench).await;
    for at in 1..3 {
        trench.cluster.members[at].kill();
    }
    // Twice the TTL without a leader.
    tokio::time::sleep(std::time::Duration::from_secs(12)).await;
    trench.cluster.start_all();
    trench.cluster.ready().await;
    assert_eq!(ids(&trench).await, before, "the same prefix, although no call refreshed it");
    let client = Client::go();
    assert_eq!(client.allocate(&trench.server(0), &child).await.prefix(), prefix);
    assert_eq!(ids(&trench).await, before);
}
