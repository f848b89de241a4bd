//! Node tokens from joining: renewal and replacement, over HTTP and with the real `ipamctl`.

use std::process::Command;

use ipam_api::client::{Call, Client};
use ipam_api::limits::NODE_TOKEN_TTL_MS;
use ipam_api::time::Timestamp;
use ipam_api::token::Token;
use ipam_api::{Code, Problem};
use ipam_machine::command::secret_hash;
use serde_json::{Value, json};

use crate::support::ask::refused;
use crate::support::{Cluster, LONG, programs};

const GUARDED: &str =
    "heartbeat_ms = 100\nelection_min_ms = 600\nelection_max_ms = 1000\n[access]\nrequire_tokens = true";

fn with(call: Call, secret: &str) -> Call {
    call.header("authorization", &format!("Bearer {secret}")).unwrap().within(LONG)
}

async fn join_token(root: &Client, mut allocate_request: Value) -> String {
    allocate_request["purpose"] = "join".into();
    allocate_request["role"] = "node".into();
    allocate_request["ttl_ms"] = 60_000.into();
    let call = Call::post("/v1/tokens").json(&allocate_request).unwrap().within(LONG);
    root.call::<Token>(call).await.unwrap().secret.unwrap()
}

async fn join(client: &Client, with_token: &str, secret: &str) -> Result<Token, Problem> {
    let hash: String = secret_hash(secret).iter().map(|byte| format!("{byte:02x}")).collect();
    let body = json!({"node": {"name": "n1"}, "secret_hash": hash});
    client.call(with(Call::post("/v1/join").json(&body).unwrap(), with_token)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hardening_5_a_node_renews_its_token_and_no_other() {
    let cluster = Cluster::of_with(3, GUARDED).all_up().await;
    let (root, client) = (Client::over_socket(&cluster.members[0].socket()).unwrap(), cluster.ask());
    let with_token = join_token(&root, json!({"name": "join-1"})).await;
    let own = format!("ipamd_{}", "5".repeat(64));
    let made = join(&client, &with_token, &own).await.unwrap();
    let ends = |token: &Token| token.status.expires_at.unwrap();
    let Timestamp(created) = made.meta.created_at;
    assert_eq!(ends(&made), Timestamp(created + NODE_TOKEN_TTL_MS));
    let renew = |secret: &str| with(Call::post("/v1/tokens/self/renew"), secret);
    // At any member, as often as it likes: too early to change anything.
    for member in &cluster.members {
        let renewed: Token = member.ask().call(renew(&own)).await.unwrap();
        assert_eq!((renewed.meta.revision, ends(&renewed)), (made.meta.revision, ends(&made)));
        assert_eq!(renewed.secret, None);
    }
    let admin = json!({"name": "boss", "role": "admin"});
    let admin: Token = root.call(Call::post("/v1/tokens").json(&admin).unwrap().within(LONG)).await.unwrap();
    let created = json!({"name": "n2", "role": "node", "node": {"name": "n2"}});
    let created: Token =
        root.call(Call::post("/v1/tokens").json(&created).unwrap().within(LONG)).await.unwrap();
    for secret in [admin.secret.unwrap(), created.secret.unwrap()] {
        refused(client.call::<Token>(renew(&secret)).await, Code::Forbidden);
    }
    refused(client.call::<Token>(renew(&with_token)).await, Code::Forbidden);
    // As a node's timer does it.
    let file = cluster.dir.path().join("node.token");
    std::fs::write(&file, &own).unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let mut command = Command::new(programs::ipamctl());
    command.env_clear().args(["--server", &cluster.members[0].url(), "--token-file"]).arg(&file);
    let output = command.args(["token", "renew"]).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{printed}");
    assert!(printed.contains(&format!("token {} renewed; it expires in 89d", made.name)), "{printed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn red_team_hardening_6_a_join_token_takes_over_no_node_that_has_a_token() {
    let cluster = Cluster::of_with(3, GUARDED).all_up().await;
    let (root, client) = (Client::over_socket(&cluster.members[0].socket()).unwrap(), cluster.ask());
    let first = join_token(&root, json!({"name": "join-1"})).await;
    let made = join(&client, &first, "ipamd_mine").await.unwrap();
    let any = join_token(&root, json!({"name": "join-2"})).await;
    refused(join(&client, &any, "ipamd_stolen").await, Code::ForeignNode);
    let own = join_token(&root, json!({"name": "join-3", "node": {"name": "n1"}})).await;
    let problem = join(&client, &own, "ipamd_stolen").await.unwrap_err();
    assert_eq!(problem.code, Code::AlreadyExists);
    assert!(problem.detail.contains(made.name.as_str()) && problem.help.contains("--replace"), "{problem}");
    let read = async |secret: &str| {
        let path = "/v1/attachments/default/n1/net/c/eth0";
        client.call::<Value>(with(Call::get(path), secret)).await.unwrap_err().code
    };
    assert_eq!(read("ipamd_mine").await, Code::NotFound, "the node's token is as good as before");
    // Only an administrator decides, and for a node by its name.
    let unnamed = json!({"name": "j", "purpose": "join", "role": "node", "ttl_ms": 1000, "replace": true});
    let call = Call::post("/v1/tokens").json(&unnamed).unwrap().within(LONG);
    refused(root.call::<Token>(call).await, Code::ConflictingFields);
    let file = cluster.dir.path().join("join.token");
    let socket = format!("unix:{}", cluster.members[0].socket().display());
    let mut command = Command::new(programs::ipamctl());
    command.env_clear().args(["--server", &socket, "token", "join", "--node", "default/n1", "--replace"]);
    let output = command.arg("--to-file").arg(&file).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let replacing = std::fs::read_to_string(&file).unwrap().trim().to_owned();
    let new = join(&client, &replacing, "ipamd_new").await.unwrap();
    assert_eq!(read("ipamd_mine").await, Code::Unauthenticated);
    assert_eq!(read("ipamd_new").await, Code::NotFound);
    // The answer was lost: the same again, at each member.
    for member in &cluster.members {
        assert_eq!(join(&member.ask(), &replacing, "ipamd_new").await.unwrap().name, new.name);
    }
}
