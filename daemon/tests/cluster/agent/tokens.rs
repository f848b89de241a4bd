//! The agent in a cluster with TLS and tokens: joins that are interrupted, renewal, revocation, and requests
//! that name another node.

use std::io::Write as _;
use std::path::PathBuf;

use ipam_api::client::{Call, Client};
use ipam_api::token::Token;
use serde_json::{Value, json};

use crate::cluster::access::{make, root};
use crate::cluster::agent::outages::all_is_free_for;
use crate::support::agent::Agent;
use crate::support::ask::{allocations, list, make_pools};
use crate::support::plugin::Plugin;
use crate::support::{Cluster, LONG, until};

/// A member with TLS that requires tokens.
async fn guarded_by_tls() -> (Cluster, Client) {
    let (cluster, _ca) = Cluster::secure(1);
    let mut config = std::fs::File::options().append(true).open(cluster.config()).unwrap();
    writeln!(config, "[access]\nrequire_tokens = true").unwrap();
    let cluster = cluster.all_up().await;
    let root = root(&cluster);
    make_pools(&root).await;
    (cluster, root)
}

fn join_token_file(cluster: &Cluster) -> PathBuf {
    cluster.dir.path().join("join.token")
}

/// Writes a join token for the node to the agent's file.
async fn admit(cluster: &Cluster, root: &Client, name: &str) {
    let body = json!({
        "name": name, "purpose": "join", "role": "node", "node": {"name": "node-1"}, "ttl_ms": 600_000,
    });
    let secret = make(root, body).await.secret.unwrap();
    let file = join_token_file(cluster);
    std::fs::write(&file, secret).unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
}

/// An agent that has to join, and isn't started.
fn agent(cluster: &Cluster) -> Agent {
    let ca = cluster.members[0].tls.as_ref().unwrap().ca.clone();
    let more = format!("ca_file = {ca:?}\njoin_token_file = {:?}", join_token_file(cluster));
    Agent::of(&cluster.urls(), "node-1", &more)
}

async fn started(agent: &mut Agent) {
    agent.start();
    agent.serves().await;
}

async fn logs(agent: &Agent, text: &str) {
    until(&format!("the agent logs {text:?}"), async || {
        if agent.logged().contains(text) { Ok(()) } else { Err(agent.logged()) }
    })
    .await;
}

/// Tokens of the node, without those for a join.
async fn tokens(root: &Client) -> Vec<Token> {
    let all: Vec<Token> = list(root, "/v1/tokens").await;
    all.into_iter().filter(|token| token.node.is_some() && !token.name.as_str().starts_with("join")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_joins_once_servers_answer_and_renews_its_token() {
    let (mut cluster, root) = guarded_by_tls().await;
    admit(&cluster, &root, "join-1").await;
    cluster.kill_all();
    let mut agent = agent(&cluster);
    agent.start();
    logs(&agent, "the node can't join yet").await;
    assert!(!agent.state().join("token").exists() && !agent.socket().exists());
    cluster.start_all();
    cluster.ready().await;
    agent.serves().await;
    logs(&agent, "the node's token is renewed").await;
    let add = Plugin::new("ADD", "c1", &agent.network(&["web", "web6"])).run().await;
    assert_eq!(add.addresses().len(), 2);
    assert_eq!(tokens(&root).await.len(), 1);
    // Its own token alone serves the next start.
    std::fs::remove_file(join_token_file(&cluster)).unwrap();
    agent.kill();
    started(&mut agent).await;
    Plugin::new("DEL", "c1", &agent.network(&[])).run().await.succeeds();
    all_is_free_for(&root, &agent).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_join_that_a_crash_interrupts_goes_on_with_the_same_secret() {
    let (cluster, root) = guarded_by_tls().await;
    admit(&cluster, &root, "join-1").await;
    let mut agent = agent(&cluster);
    let (new, token) = (agent.state().join("token.new"), agent.state().join("token"));
    let mut secrets = Vec::new();
    for point in ["secret-written", "joined"] {
        agent.start_killed_at(point);
        agent.ends().await;
        assert!(!token.exists(), "{point}");
        secrets.push(std::fs::read_to_string(&new).unwrap());
    }
    started(&mut agent).await;
    secrets.push(std::fs::read_to_string(&token).unwrap());
    assert!(!new.exists());
    assert!(secrets.iter().all(|secret| *secret == secrets[0]), "one secret for one join");
    assert_eq!(tokens(&root).await.len(), 1, "the join token was used once");
    Plugin::new("ADD", "c1", &agent.network(&["web"])).run().await.succeeds();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_with_a_revoked_token_gets_nothing_until_it_joins_again() {
    let (cluster, root) = guarded_by_tls().await;
    admit(&cluster, &root, "join-1").await;
    let mut agent = agent(&cluster);
    started(&mut agent).await;
    let conf = agent.network(&["web"]);
    Plugin::new("ADD", "c1", &conf).run().await.succeeds();
    let name = tokens(&root).await[0].name.clone();
    root.send(Call::delete(format!("/v1/tokens/{name}")).within(LONG)).await.unwrap();
    let why = Plugin::new("ADD", "c2", &conf).run().await.fails(11);
    assert!(why.contains("unauthenticated"), "{why}");
    // The DEL waits in the journal for a token.
    Plugin::new("DEL", "c1", &conf).run().await.succeeds();
    assert_eq!(allocations(&root).await.len(), 1);
    agent.kill();
    std::fs::remove_file(agent.state().join("token")).unwrap();
    admit(&cluster, &root, "join-2").await;
    started(&mut agent).await;
    all_is_free_for(&root, &agent).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_agent_replaces_the_realm_and_the_node_of_a_request() {
    let (cluster, root) = guarded_by_tls().await;
    admit(&cluster, &root, "join-1").await;
    let mut agent = agent(&cluster);
    started(&mut agent).await;
    let mut conf = agent.network(&["web"]);
    conf["ipam"]["realm"] = "elsewhere".into();
    conf["ipam"]["node"] = "node-2".into();
    Plugin::new("ADD", "c1", &conf).run().await.succeeds();
    let held: Vec<Value> = list(&root, "/v1/allocations").await;
    assert_eq!(held.len(), 1);
    let found = (&held[0]["node"], &held[0]["endpoint"]["realm"], &held[0]["endpoint"]["namespace"]);
    assert_eq!(found, (&json!("node-1"), &json!("default"), &json!("node-1")), "{}", held[0]);
    Plugin::new("DEL", "c1", &conf).run().await.succeeds();
    all_is_free_for(&root, &agent).await;
}
