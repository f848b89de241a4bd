//! Claims of nodes about their pods, verified by the reports of the watcher.

use ipam_api::client::{Call, Client};
use ipam_api::cluster::Cluster as Shown;
use ipam_api::request::Allocated;
use ipam_api::{Code, Problem};
use serde_json::{Value, json};
use test_apiserver::ApiServer;

use super::scene::{pod, request, section};
use crate::cluster::access::{node_secret, root, with};
use crate::support::ask::{allocations, get, subnet_with_pool};
use crate::support::{Cluster, until};

const CONFIG: &str = "[access]
require_tokens = true
[raft]
heartbeat_ms = 100
election_min_ms = 600
election_max_ms = 1000
";

/// Node with its token.
struct Node<'a> {
    client: Client,
    secret: &'a str,
}

impl Node<'_> {
    async fn add(&self, body: &Value) -> Result<Allocated, Problem> {
        let call = Call::post("/v1/allocations").json(body).unwrap().repeatable();
        self.client.call(with(call, self.secret)).await
    }

    /// Code with which an ADD would be refused now.
    async fn refusal(&self, body: &Value) -> Option<Code> {
        let call = Call::post("/v1/allocations").query("dry_run", "true").json(body).unwrap();
        self.client.send(with(call, self.secret)).await.err().map(|problem| problem.code)
    }
}

async fn mismatches(root: &Client) -> Vec<Value> {
    let events: Value = get(root, "/v1/events?limit=1000").await.unwrap();
    let all = events["items"].as_array().unwrap().iter();
    all.filter(|event| event["type"] == "node.mismatch").cloned().collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_obtains_addresses_only_for_pods_as_its_cluster_shows_them() {
    let api = ApiServer::start();
    let mut cluster = Cluster::of(3);
    let watched = section("default", &api, cluster.dir.path());
    std::fs::write(cluster.config(), format!("{watched}{CONFIG}")).unwrap();
    cluster = cluster.all_up().await;
    let root = root(&cluster);
    subnet_with_pool(&root, "bank", "10.2.0.0/24", json!({"endpoint_selector": "app=bank"})).await;
    subnet_with_pool(&root, "web", "10.1.0.0/24", json!({"default": true})).await;
    let secret = node_secret(&root, "n1", "n1").await;
    let node = Node { client: cluster.ask(), secret: &secret };
    let uid = pod(&api, "web-0", "n1", json!({"labels": {"app": "web"}}));
    let own = request("default", ("web-0", "n1", &uid), json!({"labels": {"app": "web"}}));
    let stolen = request(
        "default",
        ("web-0", "n1", &uid),
        json!({"labels": {"app": "bank"}, "interfaces": [{"name": "eth0", "ipv4_pools": ["bank"]}]}),
    );
    until("claims are verified", async || match node.refusal(&stolen).await {
        Some(Code::ClaimMismatch) => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
    assert_eq!(node.add(&stolen).await.unwrap_err().code, Code::ClaimMismatch);
    assert!(allocations(&root).await.is_empty());
    let events = mismatches(&root).await;
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0]["reason"], "a label \"app\" of pod/shop/web-0", "{events:?}");
    // The pod of another node.
    let other = pod(&api, "web-1", "n2", json!({}));
    let foreign = request("default", ("web-1", "n1", &other), json!({}));
    assert_eq!(node.add(&foreign).await.unwrap_err().code, Code::ClaimMismatch);
    node.add(&own).await.unwrap();
    // The next leader verifies from its first moment on.
    let shown: Shown = get(&root, "/v1/cluster").await.unwrap();
    let leader =
        cluster.members.iter().position(|member| Some(&member.name) == shown.leader.as_ref()).unwrap();
    cluster.members[leader].kill();
    let root = Client::over_socket(&cluster.members[(leader + 1) % 3].socket()).unwrap();
    until("the next leader verifies", async || match node.refusal(&stolen).await {
        Some(Code::ClaimMismatch) => Ok(()),
        Some(Code::NoLeader | Code::Unreachable | Code::DeadlineExceeded) => Err("no leader".to_owned()),
        other => panic!("{other:?}"),
    })
    .await;
    // A new pod waits for its report, and not for a repetition by its runtime.
    for number in 2..12 {
        let name = format!("web-{number}");
        let uid = pod(&api, &name, "n1", json!({"labels": {"app": "web"}}));
        let body = request("default", (&name, "n1", &uid), json!({"labels": {"app": "web"}}));
        node.add(&body).await.unwrap_or_else(|problem| panic!("{name}: {problem}"));
    }
    assert_eq!(allocations(&root).await.len(), 11);
    let shown: Value = get(&root, "/v1/pods?name=web-1").await.unwrap();
    assert_eq!(shown["items"][0]["pod"]["node"], "n2");
}
