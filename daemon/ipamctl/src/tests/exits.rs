//! One test for each exit code.

use super::*;

/// Answers every write with a problem.
macro_rules! refusing {
    ($code:expr) => {
        |method, _, _| match method {
            "GET" => Some((200, pool("web", 0))),
            _ => {
                let problem = Problem::new($code, "pool web is as it is").help("Leave it.");
                Some((problem.status, serde_json::to_value(problem).unwrap()))
            }
        }
    };
}

/// Exit code and error text of a command that fails.
async fn ended(answers: Answers, line: &str) -> (u8, String) {
    let (server, _) = pretend(answers).await;
    let (result, _) = run(&server, line).await;
    (code(&result), result.err().and_then(|failure| failure.text(false)).unwrap_or_default())
}

const CREATE: &str = "pool create web --subnet lan";
/// Command whose request the client repeats until the timeout.
const CREATE_REPEATED: &str = "pool create web --subnet lan --timeout 3s";

#[tokio::test]
async fn done_is_zero_also_when_there_was_nothing_to_do() {
    assert_eq!(ended(|_, _, _| Some((201, pool("web", 0))), CREATE).await, (0, String::new()));
    assert_eq!(ended(|_, _, _| Some((200, pool("web", 0))), "pool set web --enable").await.0, 0);
}

#[tokio::test]
async fn refused_by_a_rule_is_one() {
    for code in [Code::InUse, Code::PoolExhausted, Code::Forbidden, Code::ManagedElsewhere] {
        assert_eq!(code.entry().exit, 1, "{code}");
    }
    let expected = "in use: pool web is as it is\n  Leave it.   (exit 1)";
    assert_eq!(ended(refusing!(Code::InUse), CREATE).await, (1, expected.to_owned()));
}

#[tokio::test]
async fn a_usage_error_is_two() {
    assert_eq!(ended(refusing!(Code::InvalidField), CREATE).await.0, 2);
    let (code, said) = ended(|_, _, _| None, "apply -f /nowhere.yaml").await;
    assert!(code == 2 && said.starts_with("usage: /nowhere.yaml can't be read"), "{said}");
}

#[tokio::test]
async fn not_found_is_three() {
    let (code, said) = ended(|_, _, _| None, "pool show web").await;
    assert!(code == 3 && said.starts_with("not found: "), "{said}");
}

#[tokio::test]
async fn a_conflict_is_four() {
    assert_eq!(ended(refusing!(Code::AlreadyExists), CREATE).await.0, 4);
    assert_eq!(ended(refusing!(Code::RevisionMismatch), "pool set web --disable").await.0, 4);
}

#[tokio::test]
async fn nothing_was_changed_is_five() {
    let (code, said) = ended(refusing!(Code::NoLeader), CREATE_REPEATED).await;
    assert!(code == 5 && said.starts_with("no leader: "), "{said}");
}

#[tokio::test]
async fn an_unknown_outcome_is_six_and_says_how_to_repeat() {
    let (server, seen) = pretend(|_, _, _| Some((502, json!("bad gateway")))).await;
    let (result, _) = run(&server, &format!("{CREATE_REPEATED} --comment \"NET 4711\"")).await;
    let said = result.unwrap_err().text(false).unwrap();
    let sent = seen.lock().unwrap().clone();
    let key = sent[0].split_once("idempotency-key:").unwrap().1.split_once(' ').unwrap().0;
    let repeat = format!("{CREATE_REPEATED} --comment 'NET 4711' --idempotency-key {key}   (exit 6)");
    assert!(said.starts_with("outcome unknown: ") && said.ends_with(&repeat), "{said}");
    assert!(sent.len() > 1 && sent.iter().all(|line| line.contains(key)), "the key makes repeating safe");
}

#[tokio::test]
async fn something_found_is_seven() {
    let (code, said) = ended(world::world, "status --check").await;
    assert_eq!((code, said), (0, String::new()));
    let file = tempfile::NamedTempFile::with_suffix(".yaml").unwrap();
    std::fs::write(file.path(), "kind: pool\nname: new\nsubnet: lan\n").unwrap();
    assert_eq!(ended(world::world, &format!("diff -f {}", file.path().display())).await.0, 7);
    assert_eq!(ended(world::world, "fsck").await, (7, String::new()));
    assert_eq!(ended(world::world, "gc --dry-run --exit-code").await.0, 7);
    assert_eq!(ended(world::world, "gc --dry-run").await.0, 0);
}

#[tokio::test]
async fn an_unreachable_server_is_five() {
    for line in ["status", "pool list --timeout 3s"] {
        // No server listens on port 1 of loopback.
        let (result, text) = run("http://127.0.0.1:1", line).await;
        assert_eq!((code(&result), text.as_str()), (5, ""), "{line}");
        let said = result.unwrap_err().text(false).unwrap();
        assert!(said.contains("\n  http://127.0.0.1:1: "), "{said}");
    }
}

#[tokio::test]
async fn a_server_that_wants_to_know_who_asks_is_not_down() {
    let (server, _) = pretend(|_, _, _| {
        let barred = Problem::new(Code::Unauthenticated, "the request has no credentials");
        Some((401, serde_json::to_value(barred).unwrap()))
    })
    .await;
    let (result, _) = run(&server, "status").await;
    assert_eq!(code(&result), 1);
    let said = result.unwrap_err().text(false).unwrap();
    assert!(
        said.contains("the request has no credentials") && !said.contains("no server answered"),
        "{said}"
    );
}

#[tokio::test]
async fn an_unknown_outcome_is_six() {
    let (server, _) = pretend(|method, _, _| match method {
        "GET" => Some((200, pool("web", 0))),
        // This response is not from ipamd: a proxy failed, and the request may have been applied.
        _ => Some((502, json!("bad gateway"))),
    })
    .await;
    let (result, _) = run(&server, "allocate --endpoint host/a --pool web --timeout 3s").await;
    assert_eq!(code(&result), 6);
    let said = result.unwrap_err().text(false).unwrap();
    assert!(
        said.contains("repeat safely:  run the same command again; existing addresses of host/a on eth0"),
        "{said}"
    );
}

#[tokio::test]
async fn status_checks() {
    let (server, seen) = pretend(|_, _, _| {
        Some((
            200,
            json!({"id": "c", "epoch": 1, "level": 1, "answered_by": "n1", "leader": "n1", "term": 1,
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
    let (result, text) = run(&server, "status").await;
    assert_eq!(code(&result), 0);
    assert!(text.contains("DEGRADED  1 of 2 members answers · leader n1"), "{text}");
    let (result, _) = run(&server, "status --check").await;
    assert_eq!(code(&result), 7);
    assert!(result.unwrap_err().text(false).is_none());
    assert_eq!(seen.lock().unwrap()[0], "GET /v1/cluster?consistency=stale");
}
