//! Vectors of Meridio's own tests that its wire protocol can express, in both families.

use ipam_api::client::Call;
use ipam_api::resource::{Page, Prefix};

use super::clients::{Child, Client, IPV4, IPV6};
use super::trench::Trench;
use crate::support::{Cluster, LONG};

/// Trenches of the vectors: the IPv4 one of upstream, and its likeness in IPv6.
const SETTINGS: &str = "prefix_ipv4 = \"172.0.0.0/16\"\nprefix_ipv6 = \"2001:1::/48\"";
/// Families with the addresses of the first conduit's first two nodes, and of the second conduit's first.
const FAMILIES: [(i32, [&str; 3]); 2] = [
    (IPV4, ["172.0.0.1/24", "172.0.1.1/24", "172.0.16.1/24"]),
    (IPV6, ["2001:1::1/64", "2001:1:0:1::1/64", "2001:1:0:100::1/64"]),
];

/// Ends the prefix at a path of owners.
async fn release(trench: &Trench, pool: &str, path: &str) {
    let client = trench.cluster.ask();
    let list = Call::get("/v1/prefixes").query("pool", pool).query("path", path).within(LONG);
    let page: Page<Prefix> = client.call(list).await.unwrap();
    assert_eq!(page.items.len(), 1, "{path}");
    let call = Call::delete(format!("/v1/prefixes/{}", page.items[0].id)).within(LONG);
    client.send(call).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m6_2_the_vectors_of_conduits_nodes_and_children_have_the_same_addresses() {
    let trench = Trench::with(Cluster::of(1), None, SETTINGS).up().await;
    let (server, client) = (trench.server(0), Client::go());
    for conduit in ["conduit-a", "conduit-b"] {
        trench.conduit(conduit).await;
    }
    for (family, [first, second, other]) in FAMILIES {
        let bridge = async |conduit: &str, node: &str| {
            client.allocate(&server, &Child::new(conduit, node, "bridge", family)).await.prefix()
        };
        // Node 172.0.0.0/24: `bridge` is 172.0.0.1, and again.
        assert_eq!(bridge("conduit-a", "node-a").await, first);
        assert_eq!(bridge("conduit-a", "node-a").await, first);
        // node-a is 172.0.0.0/24, node-b is 172.0.1.0/24, node-a again is 172.0.0.0/24.
        assert_eq!(bridge("conduit-a", "node-b").await, second);
        assert_eq!(bridge("conduit-a", "node-a").await, first);
        // The second conduit has the second block of the trench.
        assert_eq!(bridge("conduit-b", "node-a").await, other);
        // Without node-a, the next new node has its block.
        let pool = if family == IPV4 { "default-ipv4" } else { "default-ipv6" };
        release(&trench, pool, "conduit-a/node-a").await;
        assert_eq!(bridge("conduit-a", "node-c").await, first);
        // Without conduit-a, the next new conduit has its block.
        release(&trench, pool, "conduit-a").await;
    }
    trench.conduit("conduit-c").await;
    for (family, [first, ..]) in FAMILIES {
        let child = Child::new("conduit-c", "node-a", "bridge", family);
        assert_eq!(client.allocate(&server, &child).await.prefix(), first);
    }
}
