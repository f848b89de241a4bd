//! A trench whose configured prefix changed.

use super::clients::{Child, Client, IPV4};
use super::trench::Trench;
use crate::support::until;

/// Exit code for a configuration that can't be served.
const CONFIGURATION: i32 = 2;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m6_9_a_member_with_a_changed_prefix_refuses_to_start_and_says_why() {
    let mut trench = Trench::plain(1).up().await;
    trench.conduit("conduit-a").await;
    let child = Child::new("conduit-a", "node-1", "bridge", IPV4);
    let client = Client::go();
    assert_eq!(client.allocate(&trench.server(0), &child).await.prefix(), "169.255.0.1/24");
    assert!(trench.cluster.stop(0).await.success());
    let before = trench.cluster.members[0].config.clone();
    trench.cluster.members[0].config += "prefix_ipv4 = \"172.16.0.0/16\"\n";
    trench.cluster.start(0);
    let status = trench.cluster.members[0].exit().await;
    let logged = trench.cluster.members[0].tail();
    assert_eq!(status.code(), Some(CONFIGURATION), "{logged}");
    for part in ["IPAM_PREFIX_IPV4", "172.16.0.0/16", "set it to 169.255.0.0/16", "ipamctl pool delete"] {
        assert!(logged.contains(part), "{part}: {logged}");
    }
    trench.cluster.members[0].config = before;
    let trench = trench.up().await;
    until("the child has its address again", async || {
        let answer = client.allocate(&trench.server(0), &child).await;
        (answer.address == "169.255.0.1").then_some(()).ok_or_else(|| format!("{answer:?}"))
    })
    .await;
}
