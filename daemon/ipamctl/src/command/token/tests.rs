//! Tokens of a fake server, and the destinations of their secrets.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::tests::{code, meta, pretend, run};

const SECRET: &str = "ipamd_s3cret";

fn answers(method: &str, path: &str, _: usize) -> Option<(u16, Value)> {
    let mut token = json!({"name": "ci", "role": "operator", "realms": ["prod-eu"], "labels": "team=web",
                           "purpose": "bearer", "description": "", "meta": meta(9), "status": {"used": false}});
    match (method, path) {
        ("GET", "/v1/tokens/ci") => Some((200, token)),
        ("GET", path) if path.starts_with("/v1/tokens?") => {
            Some((200, json!({"items": [token], "revision": 9})))
        }
        ("POST", path) if path.contains("dry_run") => Some((200, json!({"dry": true}))),
        ("POST", "/v1/tokens" | "/v1/tokens/ci/rotate") => {
            token["secret"] = SECRET.into();
            Some((201, token))
        }
        ("POST", "/v1/tokens/self/renew") => {
            token["status"]["expires_at"] = "2030-01-01T00:00:00Z".into();
            Some((200, token))
        }
        ("DELETE", "/v1/tokens/ci") => Some((200, json!({}))),
        _ => None,
    }
}

#[tokio::test]
async fn a_token_is_made_as_it_was_said() {
    let (server, seen) = pretend(answers).await;
    let line =
        "token create ci --role node --node prod-eu/worker-3 --only-realm prod-eu -l team=web --ttl 30d";
    let (result, text) = run(&server, line).await;
    assert_eq!((code(&result), text.as_str()), (0, "ipamd_s3cret\n"), "alone, for a pipe");
    let seen = seen.lock().unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(seen[0].strip_prefix("POST /v1/tokens ").unwrap()).unwrap(),
        json!({"name": "ci", "purpose": "bearer", "role": "node", "node": {"realm": "prod-eu", "name": "worker-3"},
               "realms": ["prod-eu"], "labels": "team=web", "ttl_ms": 2_592_000_000_u64})
    );
}

#[tokio::test]
async fn a_secret_goes_to_one_place() {
    let (server, _) = pretend(answers).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ci.token");
    for line in ["token create ci --role viewer", "token rotate ci --yes"] {
        for format in ["table", "json", "yaml"] {
            let line = format!("{line} --to-file {} -o {format}", file.display());
            let (result, text) = run(&server, &line).await;
            assert_eq!(code(&result), 0, "{line}");
            assert!(!text.contains(SECRET), "{text}");
            assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("{SECRET}\n"));
            assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
    let (_, text) = run(&server, "token create ci --role viewer -o json").await;
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["secret"], SECRET);
}

#[tokio::test]
async fn a_file_that_cannot_be_written_makes_no_token() {
    let (server, seen) = pretend(answers).await;
    let (result, _) = run(&server, "token create ci --role viewer --to-file /nowhere/ci.token").await;
    assert_eq!((code(&result), seen.lock().unwrap().len()), (2, 0));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ci.token");
    let refused = format!("token rotate cj --yes --to-file {}", file.display());
    assert_eq!(code(&run(&server, &refused).await.0), 3);
    let line = format!("token create ci --role viewer --dry-run --to-file {}", file.display());
    assert_eq!(code(&run(&server, &line).await.0), 0);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
}

#[tokio::test]
async fn invalidating_a_token_needs_confirmation() {
    let (server, seen) = pretend(answers).await;
    for line in ["token delete ci", "token rotate ci"] {
        assert_eq!(code(&run(&server, line).await.0), 2, "{line}");
        assert!(seen.lock().unwrap().is_empty());
    }
    assert_eq!(code(&run(&server, "token delete ci --yes").await.0), 0);
}

#[tokio::test]
async fn tokens_are_shown_without_secrets() {
    let (server, _) = pretend(answers).await;
    let (_, text) = run(&server, "token list").await;
    assert!(text.contains("ci    operator  realm prod-eu, labels team=web  never"), "{text}");
    let (_, text) = run(&server, "token show ci").await;
    assert!(text.contains("limited to   realm prod-eu, labels team=web\nexpires      never\n"), "{text}");
}

#[tokio::test]
async fn hardening_5_a_node_renews_its_token_without_naming_it() {
    let (server, seen) = pretend(answers).await;
    let (result, text) = run(&server, "token renew -o json").await;
    assert_eq!(
        (code(&result), serde_json::from_str::<Value>(&text).unwrap()["name"].as_str()),
        (0, Some("ci"))
    );
    assert_eq!(code(&run(&server, "token renew --dry-run").await.0), 0);
    assert_eq!(seen.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn hardening_6_only_a_join_token_of_a_named_node_replaces() {
    let (server, seen) = pretend(answers).await;
    assert!(crate::tests::parse("ipamctl token join --replace").is_err());
    assert!(crate::tests::parse("ipamctl token node --node prod-eu/worker-3").is_ok());
    assert_eq!(code(&run(&server, "token join --node prod-eu/worker-3 --replace").await.0), 0);
    let seen = seen.lock().unwrap();
    let sent: Value = serde_json::from_str(seen[0].strip_prefix("POST /v1/tokens ").unwrap()).unwrap();
    assert_eq!((&sent["replace"], &sent["node"]["name"]), (&json!(true), &json!("worker-3")));
}

#[tokio::test]
async fn a_join_token_is_short_and_for_a_node() {
    let (server, seen) = pretend(answers).await;
    assert_eq!(code(&run(&server, "token join --ttl 10m --node prod-eu/worker-3").await.0), 0);
    let seen = seen.lock().unwrap();
    let sent: Value = serde_json::from_str(seen[0].strip_prefix("POST /v1/tokens ").unwrap()).unwrap();
    assert!(sent["name"].as_str().unwrap().starts_with("join-"));
    assert_eq!(
        (&sent["purpose"], &sent["role"], &sent["ttl_ms"]),
        (&json!("join"), &json!("node"), &json!(600_000))
    );
}
