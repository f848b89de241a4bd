//! Several Kubernetes clusters with one `ipamd`.

use std::collections::BTreeSet;

use futures::StreamExt as _;
use serde_json::json;
use test_apiserver::ApiServer;

use super::scene::{add, node, pod, section};
use crate::support::ask::{allocations, subnet_with_pool};
use crate::support::{Cluster, until};

const TIMING: &str =
    "heartbeat_ms = 100\nelection_min_ms = 600\nelection_max_ms = 1000\nlease_grace_ms = 500";
/// Pods of each cluster at once.
const PODS: usize = 1_000;
/// Generations of these pods: 10,000 of two clusters.
const ROUNDS: usize = 5;
/// ADDs at once.
const AT_ONCE: usize = 64;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h6_14_pods_of_one_name_in_two_clusters_share_a_subnet_and_no_address() {
    let cluster = Cluster::of(3);
    let apis = [("eu", ApiServer::start()), ("us", ApiServer::start())];
    let sections: String = apis.iter().map(|(realm, api)| section(realm, api, cluster.dir.path())).collect();
    std::fs::write(cluster.config(), format!("log = \"info\"\n{sections}[raft]\n{TIMING}\n")).unwrap();
    let cluster = cluster.all_up().await;
    // Fewer than two generations: the addresses of deleted pods are needed again.
    let more = json!({"default": true, "cooling_ms": 0, "ranges": ["10.1.0.10-10.1.11.193"]});
    subnet_with_pool(&cluster.ask(), "web", "10.1.0.0/16", more).await;
    for (_, api) in &apis {
        node(api, "n1", json!({}), true);
    }
    let client = cluster.ask();
    for round in 0..ROUNDS {
        let pods = apis.iter().flat_map(|of| (0..PODS).map(move |number| (of, number)));
        let adds = pods.map(async |((realm, api), number)| {
            let name = format!("web-{number}");
            let uid = pod(api, &name, "n1", json!({"uid": format!("{realm}-{round}-{number}")}));
            until("the pod gets an address", async || {
                let given = add(&client, realm, (&name, "n1", &uid), json!({})).await;
                given.map(drop).map_err(|problem| problem.to_string())
            })
            .await;
        });
        futures::stream::iter(adds).buffer_unordered(AT_ONCE).collect::<()>().await;
        let held = allocations(&cluster.ask()).await;
        let addresses: BTreeSet<_> = held.iter().map(|one| one.address).collect();
        assert_eq!(addresses.len(), held.len());
        for (realm, api) in &apis {
            let of_realm = |one: &&ipam_api::resource::Allocation| one.endpoint.realm.as_str() == *realm;
            assert!(held.iter().filter(of_realm).count() >= PODS);
            for number in 0..PODS {
                assert!(api.remove(&format!("/api/v1/namespaces/shop/pods/web-{number}")));
            }
        }
    }
    until("all addresses are free", async || match allocations(&cluster.ask()).await.len() {
        0 => Ok(()),
        held => Err(format!("{held} are held")),
    })
    .await;
}
