//! Access control: tokens, nodes, revocation, and attempts without rights.

use std::collections::BTreeMap;
use std::path::Path;

use ipam_api::access::{DEEDS, Role, Target, Verb, may};
use ipam_api::client::{Call, Client};
use ipam_api::limits::{REQUESTS_IN_FLIGHT_PER_CALLER_MAX, RETRY_AFTER_MS_MIN};
use ipam_api::resource::{Network, NetworkStatus, Resource};
use ipam_api::token::Token;
use ipam_api::{Code, Problem};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::support::ask::{get, make_pools, refused};
use crate::support::raw::{request, send};
use crate::support::{Cluster, LONG};

/// Timing for a busy machine, and required tokens.
const GUARDED: &str =
    "heartbeat_ms = 100\nelection_min_ms = 600\nelection_max_ms = 1000\n[access]\nrequire_tokens = true";

pub(crate) async fn guarded(count: usize) -> Cluster {
    Cluster::of_with(count, GUARDED).all_up().await
}

/// An administrator: root, on the unix socket of a member.
pub(crate) fn root(cluster: &Cluster) -> Client {
    Client::over_socket(&cluster.members[0].socket()).unwrap()
}

pub(crate) async fn make(root: &Client, body: Value) -> Token {
    let call = Call::post("/v1/tokens").json(&body).unwrap().within(LONG);
    root.call(call).await.unwrap_or_else(|problem| panic!("{body}: {problem}"))
}

/// The secret of a new token.
async fn secret(root: &Client, name: &str, role: &str) -> String {
    make(root, json!({"name": name, "role": role})).await.secret.unwrap()
}

pub(crate) async fn node_secret(root: &Client, name: &str, node: &str) -> String {
    make(root, json!({"name": name, "role": "node", "node": {"name": node}})).await.secret.unwrap()
}

pub(crate) fn with(call: Call, secret: &str) -> Call {
    call.header("authorization", &format!("Bearer {secret}")).unwrap().within(LONG)
}

async fn create(
    client: &Client,
    secret: &str,
    name: &str,
) -> Result<Resource<Network, NetworkStatus>, Problem> {
    client.call(with(Call::post("/v1/networks").json(&json!({"name": name})).unwrap(), secret)).await
}

pub(crate) fn add(node: &str, container: &str) -> Value {
    json!({
        "endpoint": {"kind": "pod", "namespace": "web", "name": container},
        "node": node,
        "attachment": {"node": node, "config": "net", "container_id": container, "interface": "eth0"},
        "interfaces": [{"name": "eth0", "ipv4_pools": ["web"]}],
        "started": {"boot_id": "boot", "at_us": 1},
    })
}

#[tokio::test]
async fn red_team_requests_without_a_credential_are_refused() {
    let cluster = guarded(1).await;
    let member = &cluster.members[0];
    for path in ["/v1/pools", "/v1/cluster", "/v1/tokens", "/v1/events", "/metrics", "/v1/addresses/10.0.0.1"]
    {
        let answer = send(member.client, &request("GET", path, &[], b"")).await.unwrap();
        assert_eq!(answer.problem().code, Code::Unauthenticated, "{path}");
    }
    for (method, path, body) in [
        ("POST", "/v1/networks", &br#"{"name":"a"}"#[..]),
        ("PUT", "/v1/networks/a", br#"{"name":"a"}"#),
        ("DELETE", "/v1/networks/a", b""),
        ("POST", "/v1/tokens", br#"{"name":"a","role":"admin"}"#),
        ("POST", "/v1/join", br#"{"node":{"name":"a"},"secret_hash":"0000000000000000000000000000000000000000000000000000000000000000"}"#),
    ] {
        let answer = send(member.client, &request(method, path, &[], body)).await.unwrap();
        assert_eq!(answer.status, 401, "{method} {path}: {answer:?}");
    }
    // What a load balancer and a person before anything works need.
    for path in ["/livez", "/readyz", "/version"] {
        assert_eq!(send(member.client, &request("GET", path, &[], b"")).await.unwrap().status, 200, "{path}");
    }
}

#[tokio::test]
async fn red_team_rights_can_not_be_claimed_by_headers_or_queries() {
    let cluster = guarded(1).await;
    let member = &cluster.members[0];
    let root = root(&cluster);
    let admin = secret(&root, "boss", "admin").await;
    let viewer = secret(&root, "eve", "viewer").await;
    let bearer = |secret: &str| format!("Bearer {secret}");
    let (admins, viewers) = (bearer(&admin), bearer(&viewer));
    let code = async |path: &str, headers: &[(&str, &str)]| {
        send(member.client, &request("GET", path, headers, b"")).await.unwrap().problem().code
    };
    assert_eq!(code(&format!("/v1/tokens?token={admin}"), &[]).await, Code::Unauthenticated);
    assert_eq!(code("/v1/tokens", &[("x-forwarded-user", "boss")]).await, Code::Unauthenticated);
    assert_eq!(
        code("/v1/tokens", &[("principal", "boss"), ("authorization", &viewers)]).await,
        Code::Forbidden
    );
    assert_eq!(
        code("/v1/tokens", &[("authorization", &viewers), ("authorization", &admins)]).await,
        Code::Unauthenticated
    );
    for wrong in [
        "Basic cm9vdDpyb290".to_owned(),
        admin.clone(),
        bearer(&admin[..admin.len() - 1]),
        bearer(&format!("{admin}0")),
        bearer(&admin.to_uppercase()),
        bearer("ipamd_"),
        bearer(&"ipamd_0".repeat(50)),
        "Bearer".to_owned(),
    ] {
        assert_eq!(code("/v1/tokens", &[("authorization", &wrong)]).await, Code::Unauthenticated, "{wrong}");
    }
    assert!(
        send(member.client, &request("GET", "/v1/tokens", &[("authorization", &admins)], b""))
            .await
            .unwrap()
            .status
            == 200
    );
    // The history has the authenticated principal, not the claimed one.
    let headers = [("authorization", admins.as_str()), ("principal", "nobody"), ("from", "nobody")];
    let made =
        send(member.client, &request("POST", "/v1/networks", &headers, br#"{"name":"a"}"#)).await.unwrap();
    let made: Value = made.json();
    assert_eq!(made["meta"]["created_by"], "boss");
}

#[tokio::test]
async fn red_team_a_revoked_token_is_refused_everywhere_at_once() {
    let cluster = guarded(3).await;
    let root = root(&cluster);
    for round in 0..10 {
        let name = format!("ops{round}");
        let secret = secret(&root, &name, "operator").await;
        // A member that doesn't know it yet looks it up.
        for (at, member) in cluster.members.iter().enumerate() {
            create(&member.ask(), &secret, &format!("a{round}-{at}")).await.unwrap();
        }
        root.send(Call::delete(format!("/v1/tokens/{name}")).within(LONG)).await.unwrap();
        for (at, member) in cluster.members.iter().enumerate() {
            refused(create(&member.ask(), &secret, &format!("b{round}-{at}")).await, Code::Unauthenticated);
            let read: Result<Value, Problem> = member.ask().call(with(Call::get("/v1/pools"), &secret)).await;
            refused(read, Code::Unauthenticated);
        }
    }
}

#[tokio::test]
async fn red_team_a_rotated_or_expired_token_is_refused() {
    let cluster = guarded(1).await;
    let (root, client) = (root(&cluster), cluster.members[0].ask());
    let old = secret(&root, "ops", "operator").await;
    let new: Token = root.call(Call::post("/v1/tokens/ops/rotate").within(LONG)).await.unwrap();
    refused(create(&client, &old, "a").await, Code::Unauthenticated);
    create(&client, &new.secret.unwrap(), "a").await.unwrap();
    let short = make(&root, json!({"name": "short", "role": "operator", "ttl_ms": 1})).await.secret.unwrap();
    crate::support::until("the token has expired", async || match create(&client, &short, "b").await {
        Err(problem) if problem.code == Code::TokenExpired => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
}

#[tokio::test]
async fn red_team_a_nodes_token_serves_that_node_only() {
    let cluster = guarded(1).await;
    let (root, client) = (root(&cluster), cluster.members[0].ask());
    make_pools(&root).await;
    let n1 = node_secret(&root, "n1", "n1").await;
    let post = async |path: &str, body: Value| -> Result<Value, Problem> {
        client.call(with(Call::post(path).json(&body).unwrap(), &n1)).await
    };
    post("/v1/allocations", add("n1", "mine")).await.unwrap();
    refused(post("/v1/allocations", add("n2", "theirs")).await, Code::ForeignNode);
    root.send(Call::post("/v1/allocations").json(&add("n2", "theirs")).unwrap().within(LONG)).await.unwrap();
    let release = |node: &str, container: &str| {
        json!({
            "attachment": {"node": node, "config": "net", "container_id": container, "interface": "eth0"},
            "started": {"boot_id": "boot", "at_us": 2},
        })
    };
    refused(post("/v1/attachments/release", release("n2", "theirs")).await, Code::ForeignNode);
    let look = async |node: &str, container: &str| -> Result<Value, Problem> {
        let path = format!("/v1/attachments/default/{node}/net/{container}/eth0");
        client.call(with(Call::get(path), &n1)).await
    };
    look("n1", "mine").await.unwrap();
    refused(look("n2", "theirs").await, Code::ForeignNode);
    let all: Value = get(&root, "/v1/allocations").await.unwrap();
    let theirs = all["items"].as_array().unwrap().iter().find(|one| one["node"] == "n2").unwrap();
    let call = with(Call::delete(format!("/v1/allocations/{}", theirs["id"])), &n1);
    refused(client.send(call).await, Code::ForeignNode);
    post("/v1/attachments/release", release("n1", "mine")).await.unwrap();
}

#[tokio::test]
async fn red_team_a_join_token_is_good_for_one_node_once() {
    let cluster = guarded(3).await;
    let root = root(&cluster);
    let body = json!({"name": "rack-12", "purpose": "join", "role": "node", "ttl_ms": 60_000});
    let join = make(&root, body).await.secret.unwrap();
    let own = format!("ipamd_{}", "5".repeat(64));
    let hash = |secret: &str| {
        let hash = ipam_machine::command::secret_hash(secret);
        hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let ask = async |at: usize, node: &str, secret: &str| -> Result<Token, Problem> {
        let body = json!({"node": {"name": node}, "secret_hash": hash(secret)});
        cluster.members[at].ask().call(with(Call::post("/v1/join").json(&body).unwrap(), &join)).await
    };
    let made = ask(0, "n1", &own).await.unwrap();
    assert_eq!((made.role, made.secret), (Role::Node, None));
    // The answer was lost, and another member is tried.
    assert_eq!(ask(1, "n1", &own).await.unwrap().name, made.name);
    refused(ask(2, "n1", "ipamd_stolen").await, Code::Unauthenticated);
    refused(ask(2, "n2", &own).await, Code::Unauthenticated);
    let read: Result<Value, Problem> =
        cluster.members[0].ask().call(with(Call::get("/v1/pools"), &join)).await;
    refused(read, Code::Forbidden);
    // What was made with it works.
    let read: Result<Value, Problem> =
        cluster.members[2].ask().call(with(Call::get("/v1/cluster"), &own)).await;
    read.unwrap();
}

#[tokio::test]
async fn every_role_may_read_what_the_table_says() {
    let cluster = guarded(1).await;
    let (root, client) = (root(&cluster), cluster.members[0].ask());
    make_pools(&root).await;
    let paths = BTreeMap::from([
        (Target::Network, "/v1/networks/default"),
        (Target::Subnet, "/v1/subnets"),
        (Target::Pool, "/v1/pools/web"),
        (Target::Reservation, "/v1/reservations"),
        (Target::HostPolicy, "/v1/host-policies"),
        (Target::Endpoint, "/v1/endpoints/host/default/default/n1"),
        (Target::Attachment, "/v1/attachments/default/n1/net/c/eth0"),
        (Target::Allocation, "/v1/allocations"),
        (Target::Address, "/v1/addresses/10.7.0.9"),
        (Target::Prefix, "/v1/prefixes"),
        (Target::Quarantine, "/v1/quarantines"),
        (Target::Node, "/v1/nodes"),
        (Target::Namespace, "/v1/namespaces"),
        (Target::Event, "/v1/events"),
        (Target::Cluster, "/v1/cluster"),
        (Target::Backup, "/v1/cluster/backup"),
        (Target::Token, "/v1/tokens"),
        (Target::Metrics, "/metrics"),
    ]);
    for role in Role::ALL {
        let secret = match role {
            Role::Node => node_secret(&root, "node", "n1").await,
            role => secret(&root, role.as_str(), role.as_str()).await,
        };
        for (verb, target) in DEEDS.iter().filter(|(verb, _)| *verb == Verb::Read) {
            let answer = client.send(with(Call::get(paths[target]), &secret)).await;
            let forbidden = answer.is_err_and(|problem| problem.code == Code::Forbidden);
            assert_eq!(!forbidden, may(role, *verb, *target), "{role} {verb} {target}");
        }
    }
}

#[tokio::test]
async fn red_team_no_secret_is_kept_or_shown_anywhere() {
    let mut cluster = guarded(1).await;
    let root = root(&cluster);
    let keyed = Call::post("/v1/tokens")
        .json(&json!({"name": "ci", "role": "operator"}))
        .unwrap()
        .header("idempotency-key", "key")
        .unwrap();
    let first: Token = root.call(keyed.clone().within(LONG)).await.unwrap();
    let again: Token = root.call(keyed.within(LONG)).await.unwrap();
    assert_eq!(again.secret, None, "no member stores the secret");
    let secret = first.secret.unwrap();
    let client = cluster.members[0].ask();
    create(&client, &secret, "blue").await.unwrap();
    refused(create(&client, &format!("{secret}x"), "red").await, Code::Unauthenticated);
    let mut shown = String::new();
    for path in ["/v1/tokens", "/v1/tokens/ci", "/metrics", "/v1/cluster", "/v1/events"] {
        let answer = root.send(Call::get(path).within(LONG)).await;
        shown += &answer.map(|answer| String::from_utf8(answer.body).unwrap()).unwrap_or_default();
    }
    cluster.stop(0).await;
    shown += &cluster.members[0].logged();
    assert!(!shown.contains(&secret));
    assert!(!contains(&cluster.members[0].data_dir, secret.as_bytes()));
}

fn contains(dir: &Path, needle: &[u8]) -> bool {
    std::fs::read_dir(dir).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return contains(&path, needle);
        }
        std::fs::read(&path).unwrap().windows(needle.len()).any(|window| window == needle)
    })
}

#[tokio::test]
async fn red_team_requests_forge_no_lines_of_log_or_history() {
    let cluster = Cluster::up(1).await;
    let member = &cluster.members[0];
    for (header, value) in [
        ("change-comment", "fine\tbut tabbed"),
        ("change-comment", "\u{1b}[31mred\u{1b}[0m"),
        ("idempotency-key", "a\tb"),
        ("change-comment", &*"x".repeat(1025)),
        ("idempotency-key", &*"k".repeat(129)),
    ] {
        let bytes = request("POST", "/v1/networks", &[(header, value)], br#"{"name":"a"}"#);
        let answer = send(member.client, &bytes).await.unwrap();
        // A value that no header may carry gets 400 from the HTTP layer.
        assert!(matches!(answer.status, 400 | 422), "{header}: {answer:?}");
    }
    // An id that isn't harmless is not taken over.
    for id in ["a b", "a\"b", "é", &"x".repeat(65)] {
        let answer =
            send(member.client, &request("GET", "/livez", &[("request-id", id)], b"")).await.unwrap();
        assert!(answer.headers["request-id"].bytes().all(|byte| byte.is_ascii_hexdigit()), "{answer:?}");
    }
    let body = json!({"name": "a", "description": "line\n2026-01-01T00:00:00Z ERROR forged"}).to_string();
    send(member.client, &request("POST", "/v1/networks", &[], body.as_bytes())).await.unwrap();
    assert!(!member.logged().lines().any(|line| line.starts_with("2026-01-01")));
}

#[tokio::test]
async fn red_team_a_web_page_can_not_use_the_open_loopback() {
    let cluster = Cluster::up(1).await;
    let member = &cluster.members[0];
    let ask = async |host: &str, kind: &str| {
        let body = br#"{"name":"a"}"#;
        let head = format!(
            "POST /v1/networks HTTP/1.1\r\nhost: {host}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        send(member.client, &[head.as_bytes(), body].concat()).await.unwrap().status
    };
    // A name of the attacker's that leads to loopback.
    assert_eq!(ask("evil.example", "application/json").await, 403);
    assert_eq!(ask("evil.example:7440", "application/json").await, 403);
    // Requests that a page may send anywhere without a preflight request.
    assert_eq!(ask("localhost", "text/plain").await, 415);
    assert_eq!(ask("localhost", "application/x-www-form-urlencoded").await, 415);
    assert_eq!(ask(&member.client.to_string(), "application/json").await, 201);
    assert_eq!(ask("localhost:7440", "application/json").await, 409, "it is there");
}

#[tokio::test]
async fn a_tokens_file_is_read_again_at_sighup() {
    let mut cluster = Cluster::of_with(1, GUARDED);
    let file = cluster.dir.path().join("tokens.toml");
    let hash = |secret: &str| {
        let hash = ipam_machine::command::secret_hash(secret);
        hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let write = |secret: &str| {
        let text =
            format!("[[token]]\nname = \"ci\"\nrole = \"operator\"\nsecret_hash = \"{}\"\n", hash(secret));
        std::fs::write(&file, text).unwrap();
    };
    write("ipamd_first");
    let config = std::fs::read_to_string(cluster.config()).unwrap();
    std::fs::write(cluster.config(), format!("{config}tokens_file = \"{}\"\n", file.display())).unwrap();
    cluster.start_all();
    cluster.ready().await;
    let client = cluster.members[0].ask();
    let made = create(&client, "ipamd_first", "a").await.unwrap();
    assert_eq!(made.meta.created_by, "file/ci");
    write("ipamd_second");
    cluster.members[0].hang_up();
    crate::support::until("the new token is known", async || {
        create(&client, "ipamd_second", "b").await.map(drop).map_err(|problem| problem.to_string())
    })
    .await;
    refused(create(&client, "ipamd_first", "c").await, Code::Unauthenticated);
}

#[tokio::test]
async fn red_team_one_caller_can_not_take_the_place_of_all_others() {
    let cluster = Cluster::up(1).await;
    let member = &cluster.members[0];
    // Begun and not ended: each is on its way.
    let begin = async || {
        let mut stream = TcpStream::connect(member.client).await.unwrap();
        let head = "POST /v1/networks HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    };
    let mut begun = Vec::new();
    for _ in 0..REQUESTS_IN_FLIGHT_PER_CALLER_MAX {
        begun.push(begin().await);
    }
    let refused = crate::support::until("the caller has too many", async || {
        let answer = send(member.client, &request("GET", "/v1/pools", &[], b"")).await.unwrap();
        if answer.status == 429 {
            return Ok(answer);
        }
        // The question itself has taken the place of one that came a little later.
        begun.push(begin().await);
        Err(format!("{answer:?}"))
    })
    .await;
    assert_eq!(refused.problem().code, Code::TooManyRequests);
    assert_eq!(refused.headers["retry-after"], "1");
    let pause_ms = refused.problem().context.unwrap().retry_after_ms.unwrap();
    assert!((RETRY_AFTER_MS_MIN..2 * RETRY_AFTER_MS_MIN).contains(&pause_ms), "{pause_ms}");
    // Another one is served meanwhile, and this one again once some of its own have ended.
    let _: Value = get(&root(&cluster), "/v1/pools").await.unwrap();
    begun.truncate(REQUESTS_IN_FLIGHT_PER_CALLER_MAX / 2);
    crate::support::until("the caller is served again", async || {
        let answer = send(member.client, &request("GET", "/v1/pools", &[], b"")).await.unwrap();
        if answer.status == 200 { Ok(()) } else { Err(format!("{answer:?}")) }
    })
    .await;
}
