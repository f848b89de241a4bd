//! Secrets and join tokens against a fake Kubernetes API and fake servers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::settings::environment::Environment;
use crate::tests::{code, meta, pretend, run, run_within};

fn body(seen: &[String], request: &str) -> Value {
    let line = seen.iter().find_map(|line| line.strip_prefix(request));
    serde_json::from_str(line.unwrap_or_else(|| panic!("{request} in {seen:#?}"))).unwrap()
}

fn text(secret: &Value, key: &str) -> String {
    let encoded = secret["data"][key].as_str().unwrap_or_else(|| panic!("{key} in {secret}"));
    String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap()
}

const SECRETS: &str = "/api/v1/namespaces/ipamd-system/secrets";

async fn secrets(server: &str, more: &str) -> u8 {
    let flags = "--member ipamd-0 --member ipamd-1 --domain ipamd.svc --secrets-in ipamd-system";
    code(&run(server, &format!("kubernetes secrets {flags} --api-server {server} {more}")).await.0)
}

#[tokio::test]
async fn missing_secrets_are_created() {
    let (server, seen) = pretend(|method, path, _| match (method, path) {
        ("GET", path) if path.starts_with(SECRETS) => Some((200, json!({"items": []}))),
        ("POST", SECRETS) => Some((201, json!({}))),
        _ => None,
    })
    .await;
    assert_eq!(secrets(&server, "--dry-run").await, 0);
    assert!(!seen.lock().unwrap().iter().any(|line| line.starts_with("POST")));
    assert_eq!(secrets(&server, "").await, 0);
    let seen = seen.lock().unwrap();
    let created: Vec<Value> = seen
        .iter()
        .filter_map(|line| line.strip_prefix(&format!("POST {SECRETS} ")))
        .map(|body| serde_json::from_str(body).unwrap())
        .collect();
    let names: Vec<&str> =
        created.iter().map(|secret| secret["metadata"]["name"].as_str().unwrap()).collect();
    // The key of the CA is stored before the CA issues a certificate.
    assert_eq!(names, ["ipamd-ca", "ipamd-trust", "ipamd-tls", "ipamd-admin"]);
    let certificate = text(&created[0], "ca.crt");
    assert!(created.iter().all(|secret| text(secret, "ca.crt") == certificate));
    assert!(text(&created[0], "ca.key").contains("PRIVATE KEY"));
    let keys: Vec<&String> = created[2]["data"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["ca.crt", "ipamd-0.crt", "ipamd-0.key", "ipamd-1.crt", "ipamd-1.key"]);
    assert!(text(&created[3], "tls.key").contains("PRIVATE KEY"));
    assert!(created[1]["data"].as_object().unwrap().len() == 1, "agents get no key");
}

#[tokio::test]
async fn existing_secrets_stay_as_they_are() {
    let (server, seen) = pretend(|method, path, _| match method {
        "GET" if path.starts_with(SECRETS) => Some((200, json!({"items": [{"metadata": {"name": "x"}}]}))),
        _ => None,
    })
    .await;
    assert_eq!(secrets(&server, "").await, 0);
    assert!(seen.lock().unwrap().iter().all(|line| line.starts_with("GET")));
}

#[tokio::test]
async fn secrets_of_an_operator_are_not_completed_by_another_ca() {
    let (server, seen) = pretend(|method, path, _| match method {
        "GET" if path.ends_with("ipamd-trust") => Some((200, json!({"items": [{"metadata": {}}]}))),
        "GET" => Some((200, json!({"items": []}))),
        _ => None,
    })
    .await;
    assert_eq!(secrets(&server, "").await, 2);
    assert!(seen.lock().unwrap().iter().all(|line| line.starts_with("GET")));
}

#[tokio::test]
async fn an_interrupted_run_is_completed_with_the_same_ca() {
    let (server, seen) = pretend(|method, path, before| match (method, path) {
        ("POST", SECRETS) if before < 13 => Some((201, json!({}))),
        ("GET", path) if path.ends_with("ipamd-ca") && before > 6 => {
            let data = json!({"ca.crt": STANDARD.encode("none"), "ca.key": STANDARD.encode("none")});
            Some((200, json!({"items": [{"data": data, "metadata": {"name": "ipamd-ca"}}]})))
        }
        ("GET", _) => Some((200, json!({"items": []}))),
        _ => None,
    })
    .await;
    assert_eq!(secrets(&server, "").await, 0);
    // The second run uses the CA of the Secret, whose content is no CA here.
    assert_eq!(secrets(&server, "").await, 2);
    let seen = seen.lock().unwrap();
    assert_eq!(seen.iter().filter(|line| line.contains("\"ca.key\"")).count(), 1, "{seen:#?}");
}

#[tokio::test]
async fn without_an_api_server_the_command_says_how_to_name_it() {
    let environment = Environment::of([("KUBERNETES_SERVICE_HOST", "10.0.0.1")]);
    let line = "--no-input -q kubernetes secrets --member n1 --secrets-in x";
    assert_eq!(code(&run_within(&environment, line).await.0), 2);
}

fn token(name: &str, purpose: &str, node: &str, used: bool) -> Value {
    json!({"name": name, "purpose": purpose, "role": "node", "node": {"realm": "eu", "name": node},
           "meta": meta(1), "status": {"used": used}})
}

#[tokio::test]
async fn nodes_that_have_not_joined_get_a_token() {
    let (server, seen) = pretend(|method, path, _| match (method, path) {
        ("GET", "/api/v1/nodes?limit=500") => {
            let names = ["joined", "waiting"].map(|name| json!({"metadata": {"name": name}}));
            Some((200, json!({"metadata": {"continue": "more"}, "items": names})))
        }
        ("GET", "/api/v1/nodes?limit=500&continue=more") => {
            let names = ["new.example", "lost-key", "used"].map(|name| json!({"metadata": {"name": name}}));
            Some((200, json!({"metadata": {}, "items": names})))
        }
        ("GET", "/api/v1/namespaces/ipamd-system/secrets/ipam-agent-join") => {
            let data =
                json!({"joined": "a2VlcA==", "waiting": "a2VlcA==", "gone": "a2VlcA==", "used": "a2VlcA=="});
            Some((200, json!({"data": data, "metadata": {"resourceVersion": "7"}, "kind": "Secret"})))
        }
        ("PUT", "/api/v1/namespaces/ipamd-system/secrets/ipam-agent-join") => Some((200, json!({}))),
        ("GET", path) if path.starts_with("/v1/tokens") => {
            let mut items = vec![
                token("a", "bearer", "joined", false),
                token("b", "join", "waiting", false),
                token("c", "join", "lost-key", false),
                token("d", "join", "used", true),
            ];
            // The same name in another realm is another node.
            items.push(json!({"name": "e", "purpose": "bearer", "role": "node", "meta": meta(1),
                              "node": {"realm": "us", "name": "new.example"}, "status": {"used": false}}));
            Some((200, json!({"items": items, "revision": 9})))
        }
        ("POST", "/v1/tokens") => {
            let mut made = token("join-1", "join", "x", false);
            made["secret"] = "ipamd_s3cret".into();
            Some((201, made))
        }
        _ => None,
    })
    .await;
    let line = format!("kubernetes join-tokens --realm eu --secrets-in ipamd-system --api-server {server}");
    assert_eq!(code(&run(&server, &format!("{line} --dry-run")).await.0), 0);
    assert!(seen.lock().unwrap().iter().all(|line| line.starts_with("GET")));
    assert_eq!(code(&run(&server, &line).await.0), 0);
    let seen = seen.lock().unwrap();
    let asked: Vec<Value> = seen
        .iter()
        .filter_map(|line| line.strip_prefix("POST /v1/tokens "))
        .map(|body| serde_json::from_str(body).unwrap())
        .collect();
    let nodes: Vec<&str> = asked.iter().map(|body| body["node"]["name"].as_str().unwrap()).collect();
    assert_eq!(nodes, ["new.example", "lost-key", "used"]);
    assert!(asked.iter().all(|body| {
        body["purpose"] == "join" && body["node"]["realm"] == "eu" && body["ttl_ms"] == 3_600_000
    }));
    let put = body(&seen, "PUT /api/v1/namespaces/ipamd-system/secrets/ipam-agent-join ");
    assert_eq!(put["metadata"]["resourceVersion"], "7", "a change by another run is noticed");
    let keys: Vec<&String> = put["data"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["lost-key", "new.example", "used", "waiting"]);
    assert_eq!(text(&put, "waiting"), "keep");
    assert_eq!(text(&put, "new.example"), "ipamd_s3cret");
}
