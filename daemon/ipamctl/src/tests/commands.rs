//! Requests of commands, and their use of the answers.

use super::*;

#[tokio::test]
async fn a_wrong_name_gets_the_right_one() {
    let (server, _) = pretend(|_, path, _| {
        path.starts_with("/v1/pools?").then(|| (200, json!({"items": [pool("web", 0)], "revision": 7})))
    })
    .await;
    for line in [
        "pool show wbe",
        "pool set wbe --disable",
        "pool delete wbe",
        "allocate --endpoint host/a --pool wbe",
    ] {
        let (result, text) = run(&server, line).await;
        assert_eq!(code(&result), 3, "{line}");
        assert_eq!(text, "");
        let said = result.unwrap_err().text(false).unwrap();
        assert!(said.contains("Did you mean web?") && said.ends_with("(exit 3)"), "{said}");
    }
}

#[tokio::test]
async fn an_edit_begins_again_after_a_concurrent_change() {
    let (server, seen) = pretend(|method, _, before| match (method, before) {
        ("GET", _) => Some((200, pool("web", 0))),
        (_, 1) => Some((
            412,
            serde_json::to_value(Problem::new(Code::RevisionMismatch, "changed by argocd")).unwrap(),
        )),
        _ => Some((200, pool("web", 0))),
    })
    .await;
    let (result, _) = run(&server, "pool set web --add-range 10.10.0.200 --cooling 1m --disable").await;
    assert_eq!(code(&result), 0);
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 4);
    let (head, body) = seen[3].split_once(" {").unwrap();
    assert_eq!(head, "PATCH /v1/pools/web if-match:\"1204\"");
    let body: Value = serde_json::from_str(&format!("{{{body}")).unwrap();
    let ranges = json!(["10.10.0.50-10.10.0.199", "10.10.0.200"]);
    assert_eq!(body, json!({"ranges": ranges, "cooling_ms": 60_000, "disabled": true}), "and nothing else");
}

#[tokio::test]
async fn an_edit_gives_up_after_repeated_concurrent_changes() {
    let (server, _) = pretend(|method, _, _| match method {
        "GET" => Some((200, pool("web", 0))),
        _ => Some((412, serde_json::to_value(Problem::new(Code::RevisionMismatch, "changed")).unwrap())),
    })
    .await;
    assert_eq!(code(&run(&server, "pool set web --disable").await.0), 4);
}

#[tokio::test]
async fn an_edit_without_a_difference_writes_nothing() {
    let (server, seen) = pretend(|_, _, _| Some((200, pool("web", 0)))).await;
    for line in ["pool set web --enable", "pool set web --add-range 10.10.0.60 --label team=web"] {
        assert_eq!(code(&run(&server, line).await.0), 0, "{line}");
    }
    assert!(seen.lock().unwrap().iter().all(|line| line.starts_with("GET")));
    let (result, _) = run(&server, "pool set web --remove-range 10.10.0.0/24 --yes").await;
    assert_eq!(code(&result), 2, "a pool without ranges would have the whole subnet");
}

#[tokio::test]
async fn a_dangerous_command_needs_confirmation() {
    let (server, seen) = pretend(|method, path, _| match (method, path) {
        ("DELETE", "/v1/pools/web?drain=true" | "/v1/networks/lab") => Some((200, json!({}))),
        ("DELETE", "/v1/allocations/4819") => {
            Some((200, json!({"addresses": ["10.10.0.77"], "revision": 9})))
        }
        (_, "/v1/pools/web") => Some((200, pool("web", 125))),
        (_, "/v1/networks/lab") => {
            Some((200, json!({"name": "lab", "meta": meta(1), "status": {"subnets": 0, "allocated": 0}})))
        }
        (_, "/v1/allocations/4819") => Some((200, allocation("attached"))),
        ("GET", path) if path.starts_with("/v1/allocations") => {
            Some((200, json!({"items": [allocation("attached")], "revision": 9})))
        }
        _ => None,
    })
    .await;
    for (line, word) in [
        ("pool delete web", "--yes"),
        ("allocation delete 4819", "--yes"),
        ("allocation release 4819 4820", "--yes"),
        ("release 4819", "--yes"),
        ("pool set web --drain", "--yes"),
        ("pool drain web --to lab", "--yes"),
        ("network delete lab", "--confirm lab"),
        ("network delete lab --yes", "--confirm lab"),
        ("network delete lab --confirm lob", "lob"),
    ] {
        let (result, _) = run(&server, line).await;
        assert_eq!(code(&result), 2, "{line}");
        assert!(result.unwrap_err().text(false).unwrap().contains(word), "{line}");
    }
    assert!(seen.lock().unwrap().iter().all(|line| line.starts_with("GET")));
    for line in ["pool delete web --yes", "release 4819 --yes", "network delete lab --confirm lab"] {
        assert_eq!(code(&run(&server, line).await.0), 0, "{line}");
    }
}

#[tokio::test]
async fn an_address_is_released_by_its_allocation() {
    let (server, seen) = pretend(|method, path, _| match (method, path) {
        ("GET", "/v1/addresses/10.10.0.77?network=lab") => {
            let mut allocation = allocation("held");
            allocation["network"] = "lab".into();
            Some((
                200,
                json!({"address": "10.10.0.77", "network": "lab", "state": "allocated", "revision": 9,
                       "allocation": allocation}),
            ))
        }
        ("GET", "/v1/addresses/10.10.0.9") => {
            Some((200, json!({"address": "10.10.0.9", "network": "default", "state": "free", "revision": 9})))
        }
        ("DELETE", "/v1/allocations/4819") => {
            Some((200, json!({"addresses": ["10.10.0.77"], "revision": 9})))
        }
        _ => None,
    })
    .await;
    let (result, text) = run(&server, "release 10.10.0.77 --network lab -o json").await;
    assert_eq!((code(&result), text.as_str()), (0, "{\"addresses\":[\"10.10.0.77\"],\"revision\":9}\n"));
    assert_eq!(code(&run(&server, "release 10.10.0.9").await.0), 0);
    assert_eq!(seen.lock().unwrap().iter().filter(|line| line.starts_with("DELETE")).count(), 1);
}

#[tokio::test]
async fn pools_go_to_their_family() {
    let (server, seen) = pretend(|method, path, _| match (method, path) {
        ("GET", "/v1/pools/rack") => Some((200, pool("rack", 0))),
        ("GET", "/v1/pools/rack6") => {
            let mut pool = pool("rack6", 0);
            pool["ranges"] = json!([]);
            pool["status"]["family"] = 6.into();
            pool["status"]["cidr"] = "2001:db8::/64".into();
            Some((200, pool))
        }
        ("POST", _) => Some((
            201,
            json!({"endpoint": {"kind": "host", "name": "db-07"}, "repeated": false, "revision": 9,
                   "interfaces": [{"name": "eth0", "addresses": [
                       {"address": "10.10.0.50/24", "pool": "rack", "allocation": 9, "checked": false}]}]}),
        )),
        _ => None,
    })
    .await;
    let line = "allocate --endpoint host/db-07 --pool rack6 --pool rack --realm berlin -o name";
    let (result, text) = run(&server, line).await;
    assert_eq!((code(&result), text.as_str()), (0, "10.10.0.50\n"));
    let seen = seen.lock().unwrap();
    let sent: Value = serde_json::from_str(seen[2].strip_prefix("POST /v1/allocations ").unwrap()).unwrap();
    assert_eq!(
        sent,
        json!({"endpoint": {"realm": "berlin", "kind": "host", "namespace": "default", "name": "db-07"},
               "interfaces": [{"name": "eth0", "ipv4_pools": ["rack"], "ipv6_pools": ["rack6"]}]})
    );
}
