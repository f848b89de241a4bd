//! One test for each exit code.

use super::*;

#[tokio::test]
async fn nobody_answers() {
    for line in ["status", "pool list --timeout 200ms"] {
        // Port 1 of loopback: nothing listens there.
        let (result, text) = run("http://127.0.0.1:1", line).await;
        assert_eq!((code(&result), text.as_str()), (5, ""), "{line}");
        let said = result.unwrap_err().text(false).unwrap();
        assert!(said.contains("\n  http://127.0.0.1:1: "), "{said}");
    }
}

#[tokio::test]
async fn an_unknown_outcome_is_six() {
    let (server, _) = pretend(|method, _, _| match method {
        "GET" => Some((200, pool("web", 0))),
        // Not a problem of ours: something in between broke, and the request may have gone through.
        _ => Some((502, json!("bad gateway"))),
    })
    .await;
    let (result, _) = run(&server, "allocate --endpoint host/a --pool web --timeout 300ms").await;
    assert_eq!(code(&result), 6);
    let said = result.unwrap_err().text(false).unwrap();
    assert!(said.contains("repeat safely:  the same command again; what host/a holds on eth0"), "{said}");
}

#[tokio::test]
async fn status_checks() {
    let (server, seen) = pretend(|_, _, _| {
        Some((
            200,
            json!({"id": "c", "generation": 1, "level": 1, "answered_by": "n1", "leader": "n1", "term": 1,
                   "revision": 5, "digest": "d", "applied": 5, "stale_ms": 0, "pools": 0,
                   "addresses": {"size": 0, "allocated": 0, "cooling": 0, "quarantined": 0, "reserved": 0,
                                 "excluded": 0, "free": 0, "saturated": false},
                   "members": [
                       {"id": 1, "name": "n1", "role": "leader", "client_url": "", "peer_address": ""},
                       {"id": 2, "name": "n2", "role": "voter", "client_url": "http://127.0.0.1:1",
                        "peer_address": ""}]}),
        ))
    })
    .await;
    let (result, text) = run(&server, "status --timeout 300ms").await;
    assert_eq!(code(&result), 0);
    assert!(text.contains("DEGRADED  1 of 2 members answers · leader n1"), "{text}");
    let (result, _) = run(&server, "status --check --timeout 300ms").await;
    assert_eq!(code(&result), 7);
    assert!(result.unwrap_err().text(false).is_none());
    assert_eq!(seen.lock().unwrap()[0], "GET /v1/cluster?consistency=stale");
}
