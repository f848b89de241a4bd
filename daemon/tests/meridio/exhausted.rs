//! Full nodes, conduits and trenches.

use futures::future::join_all;

use super::clients::{Child, Client, IPV4};
use super::trench::Trench;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m6_11_the_child_node_and_conduit_above_the_room_are_refused_with_the_pool_named() {
    let trench = Trench::plain(1).up().await;
    let (server, client) = (trench.server(0), Client::go());
    trench.conduit("conduit-1").await;
    let (server, client) = (&server, &client);
    let allocate = |conduit: String, node: String, child: String| async move {
        client.allocate(server, &Child::new(&conduit, &node, &child, IPV4)).await
    };
    let name = |what: &str, number: u32| format!("{what}-{number}");
    let children = (1..=254).map(|number| allocate(name("conduit", 1), name("node", 1), name("c", number)));
    let mut addresses: Vec<String> = join_all(children).await.iter().map(|answer| answer.prefix()).collect();
    addresses.sort();
    addresses.dedup();
    assert_eq!(addresses.len(), 254);
    let nodes = (2..=16).map(|number| allocate(name("conduit", 1), name("node", number), name("c", 1)));
    join_all(nodes).await.iter().for_each(|answer| drop(answer.prefix()));
    for number in 2..=17 {
        trench.conduit_or_wait(&name("conduit", number)).await;
    }
    allocate(name("conduit", 16), name("node", 1), name("c", 1)).await.prefix();
    for (conduit, node, child) in [(1, 1, 255), (1, 17, 1), (17, 1, 1)] {
        let refused = allocate(name("conduit", conduit), name("node", node), name("c", child)).await;
        assert_eq!(refused.code, "RESOURCE_EXHAUSTED", "{conduit} {node} {child}: {refused:?}");
        assert!(refused.text.starts_with("no more prefix available"), "{refused:?}");
        assert!(refused.text.contains("default-ipv4"), "{refused:?}");
    }
    // What is there is served as before.
    assert_eq!(allocate(name("conduit", 1), name("node", 1), name("c", 254)).await.code, "");
}
