//! Digests of members by applied index, read while the cluster is written to.

use std::collections::BTreeMap;

use ipam_api::client::Call;
use ipam_api::cluster::Cluster as Shown;
use serde_json::json;

use crate::support::ask::put;
use crate::support::{Cluster, LONG};

/// Indexes that must be seen more than once, so that the test compares something.
const REPEATED: usize = 40;

#[tokio::test(flavor = "multi_thread")]
async fn members_show_one_digest_for_one_applied_index_under_load() {
    let cluster = Cluster::up(3).await;
    put(&cluster.ask(), "subnets", json!({"name": "s", "cidr": "10.0.0.0/16"})).await;
    put(&cluster.ask(), "pools", json!({"name": "p", "subnet": "s"})).await;
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..4 {
        let client = cluster.ask();
        writers.spawn(async move {
            for number in 0.. {
                let endpoint = json!({"kind": "machine", "name": format!("m{writer}-{number}")});
                let interfaces = json!([{"name": "eth0", "ipv4_pools": ["p"]}]);
                let body = json!({"endpoint": endpoint, "interfaces": interfaces});
                let _refused = client.send(Call::post("/v1/allocations").json(&body).unwrap()).await;
            }
        });
    }
    let (mut digests, mut repeated) = (BTreeMap::<u64, String>::new(), 0);
    let clients: Vec<_> = (0..3).map(|at| cluster.at(at)).collect();
    while repeated < REPEATED {
        for client in &clients {
            let shown: Shown = client.call(Call::get("/v1/cluster").within(LONG)).await.unwrap();
            if let Some(before) = digests.insert(shown.applied, shown.digest.clone()) {
                assert_eq!(before, shown.digest, "at applied index {}", shown.applied);
                repeated += 1;
            }
        }
    }
}
