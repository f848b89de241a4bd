//! The flags that every command has: what they send, and how the answer looks.

use super::*;

#[tokio::test]
async fn a_list_is_the_servers_bytes() {
    let (server, seen) =
        pretend(|_, _, _| Some((200, json!({"items": [pool("web", 0)], "revision": 7})))).await;
    let (result, text) = run(&server, "pool list -o json").await;
    assert_eq!(code(&result), 0);
    assert_eq!(text, format!("{}\n", json!({"items": [pool("web", 0)], "revision": 7})));
    assert_eq!(*seen.lock().unwrap(), ["GET /v1/pools?limit=1000"]);
    let (_, text) = run(&server, "pool list -o name --consistency stale").await;
    assert_eq!(text, "web\n");
    assert_eq!(seen.lock().unwrap().last().unwrap(), "GET /v1/pools?limit=1000&consistency=stale");
}

#[tokio::test]
async fn pages_are_put_together() {
    let (server, seen) = pretend(|_, _, before| {
        let name = ["web", "web6"][before];
        let mut page = json!({"items": [pool(name, 0)], "revision": 7});
        if before == 0 {
            page["next"] = "a+b".into();
        }
        Some((200, page))
    })
    .await;
    let (_, text) = run(&server, "pool list -o json").await;
    let list: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(list, json!({"items": [pool("web", 0), pool("web6", 0)], "revision": 7}));
    assert_eq!(seen.lock().unwrap()[1], "GET /v1/pools?limit=1000&cursor=a%2Bb");
}

/// Answers every list with two pools, and every write like a server that supports all flags.
fn pools(method: &str, path: &str, _: usize) -> Option<(u16, Value)> {
    match method {
        "GET" if path.starts_with("/v1/pools?") => {
            Some((200, json!({"items": [pool("web", 0), pool("lab", 9)], "revision": 7})))
        }
        "GET" => Some((200, pool("web", 0))),
        _ => Some((200, pool("web", 0))),
    }
}

async fn printed(line: &str) -> String {
    let (server, _) = pretend(pools).await;
    let (result, text) = run(&server, line).await;
    assert_eq!(code(&result), 0, "{line}: {result:?}");
    text
}

#[tokio::test]
async fn every_format_shows_the_same() {
    assert_eq!(printed("pool list -o name").await, "web\nlab\n");
    assert_eq!(printed("pool list -o jsonpath={.items[*].status.counts.free}").await, "150 141\n");
    let yaml = printed("pool list -o yaml").await;
    assert!(yaml.contains("name: web") && yaml.contains("revision: 7"), "{yaml}");
    let csv = printed("pool list -o csv --field name,status.counts.free").await;
    assert_eq!(csv, "name,status.counts.free\nweb,150\nlab,141\n");
    assert_eq!(
        printed("pool list --field name,status.counts.free --no-headers").await,
        "web  150\nlab  141\n"
    );
    assert!(printed("pool show web -o csv").await.lines().count() == 2);
    assert_eq!(printed("pool show web -o jsonpath={.meta.revision}").await, "1204\n");
    assert!(printed("pool show web -o yaml").await.contains("\n  revision: 1204\n"));
}

#[tokio::test]
async fn filters_and_fields_are_sent_to_the_server() {
    let (server, seen) = pretend(pools).await;
    for (line, asked) in [
        ("pool list -l team=web,tier!=db", "/v1/pools?labels=team%3Dweb%2Ctier%21%3Ddb&limit=1000"),
        ("pool list --sort-by -free", "/v1/pools?sort=-free&limit=1000"),
        ("pool list --field name --subnet lan", "/v1/pools?subnet=lan&fields=name&limit=1000"),
        ("pool list --at-least-revision 9 --limit 1", "/v1/pools?limit=1&at_least_revision=9"),
        ("pool show web -o json --at-least-revision 9", "/v1/pools/web?at_least_revision=9"),
    ] {
        assert_eq!(code(&run(&server, line).await.0), 0, "{line}");
        assert_eq!(*seen.lock().unwrap().last().unwrap(), format!("GET {asked}"));
    }
}

#[tokio::test]
async fn a_limit_is_a_limit() {
    assert_eq!(printed("pool list -o name --limit 1").await, "web\n");
    let list: Value = serde_json::from_str(&printed("pool list -o json --limit 1").await).unwrap();
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    assert_eq!(printed("pool list -o name --all").await, "web\nlab\n");
}

#[tokio::test]
async fn a_comment_and_a_key_go_with_a_write() {
    let (server, seen) = pretend(|_, _, _| Some((201, pool("web", 0)))).await;
    let line = "pool create web --subnet lan --comment NET-4711 --idempotency-key k1";
    assert_eq!(code(&run(&server, line).await.0), 0);
    assert_eq!(code(&run(&server, "pool create web --subnet lan").await.0), 0);
    let seen = seen.lock().unwrap();
    assert!(
        seen[0].starts_with("POST /v1/pools change-comment:NET-4711 idempotency-key:k1 {"),
        "{}",
        seen[0]
    );
    assert!(seen[1].starts_with("POST /v1/pools idempotency-key:"), "{}", seen[1]);
}

#[tokio::test]
async fn a_dry_run_is_offline_and_says_what_would_be() {
    let (server, seen) = pretend(|method, _, _| match method {
        "GET" => Some((200, pool("web", 9))),
        _ => Some((200, json!({"dry": true}))),
    })
    .await;
    for line in ["pool delete web --dry-run", "pool set web --disable --dry-run"] {
        assert_eq!(code(&run(&server, line).await.0), 0, "{line}");
        let last = seen.lock().unwrap().last().unwrap().clone();
        assert!(last.contains("dry_run=true") && !last.contains("idempotency-key"), "{last}");
    }
}

#[tokio::test]
async fn a_dry_run_of_a_change_shows_what_changes() {
    let (server, seen) = pretend(|method, _, _| match method {
        "GET" => Some((200, pool("web", 0))),
        _ => Some((200, json!({"dry": true}))),
    })
    .await;
    let (_, text) = run(&server, "pool set web --cooling 1m --label team- --dry-run").await;
    assert_eq!(text, "cooling_ms   30000 → 60000\nlabels       team=web → -\n");
    let sent = seen.lock().unwrap().last().unwrap().clone();
    assert!(sent.ends_with(r#"{"cooling_ms":60000,"labels":{"team":null}}"#), "{sent}");
}

#[tokio::test]
async fn a_dry_run_that_was_none_is_not_kept_quiet() {
    let (server, _) = pretend(|_, _, _| Some((201, pool("web", 0)))).await;
    let (result, _) = run(&server, "pool create web --subnet lan --dry-run").await;
    assert_eq!(code(&result), 6);
}

#[tokio::test]
async fn contexts_are_kept_and_used() {
    let (server, seen) = pretend(pools).await;
    let home = tempfile::tempdir().unwrap();
    let around = Environment::of([("XDG_CONFIG_HOME", home.path().to_str().unwrap())]);
    let set = format!("context set lab --server {server} --realm berlin");
    for line in [set.as_str(), "context set prod --server https://p1:7440 --production --token-file t"] {
        assert_eq!(code(&run_within(&around, line).await.0), 0, "{line}");
    }
    let (_, names) = run_within(&around, "context list -o name").await;
    assert_eq!(names, "lab\nprod\n");
    let (_, table) = run_within(&around, "context list").await;
    assert!(table.contains("*  lab") && table.contains("prod (production)"), "{table}");
    assert_eq!(
        code(&run_within(&around, "pool show web -o name").await.0),
        0,
        "the first one is the current one"
    );
    assert_eq!(seen.lock().unwrap().len(), 1);
    assert_eq!(code(&run_within(&around, "context use nowhere").await.0), 2);
    assert_eq!(code(&run_within(&around, "context set empty").await.0), 2);
    assert_eq!(code(&run_within(&around, "context use prod").await.0), 0);
    let (_, shown) = run_within(&around, "context show -o json").await;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((&shown["production"], &shown["servers"]), (&json!(true), &json!(["https://p1:7440"])));
    assert!(shown["token_file"].as_str().unwrap().ends_with("/t"), "kept by where it is");
    assert_eq!(code(&run_within(&around, "context delete prod").await.0), 0);
    assert_eq!(code(&run_within(&around, "context show").await.0), 2, "none is the current one any more");
}
