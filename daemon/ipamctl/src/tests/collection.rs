//! Garbage collection, quarantines, tasks and fsck: requests, and their use of the answers.

use ipam_api::Problem;

use super::*;

/// Bodies of the requests that were not reads, each with its path.
fn writes(seen: &[String]) -> Vec<(String, Value)> {
    let writes = seen.iter().filter(|line| !line.starts_with("GET"));
    let parsed = writes.map(|line| {
        let (head, body) = line.split_once(" {").unwrap_or((line, ""));
        let body =
            if body.is_empty() { json!(null) } else { serde_json::from_str(&format!("{{{body}")).unwrap() };
        (head.to_owned(), body)
    });
    parsed.collect()
}

fn saved(document: &Value) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::with_suffix(".json").unwrap();
    std::fs::write(file.path(), document.to_string()).unwrap();
    file
}

#[tokio::test]
async fn gc_reclaims_due_allocations_by_id_and_never_others() {
    let (server, seen) = pretend(world::world).await;
    let (result, _) = run(&server, "gc").await;
    assert_eq!(code(&result), 2, "a person has to confirm it");
    let (result, text) = run(&server, "gc --yes -o json").await;
    assert_eq!(code(&result), 0, "{result:?}");
    let (path, body) = writes(&seen.lock().unwrap()).remove(0);
    assert_eq!(path, "POST /v1/nodes/prod-eu/worker-17/reclaim");
    assert_eq!(body, json!({"reason": "node-silent", "allocations": [48_170_010]}));
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["items"][0]["result"], "released");
    // Allocations of another node are not reclaimed.
    let before = seen.lock().unwrap().len();
    assert_eq!(code(&run(&server, "gc --node prod-eu/worker-3 --yes").await.0), 0);
    assert!(writes(&seen.lock().unwrap()[before..]).is_empty());
}

#[tokio::test]
async fn gc_takes_exactly_the_lines_of_a_file() {
    let (server, seen) = pretend(world::world).await;
    let (_, text) = run(&server, "gc --dry-run -o json").await;
    let mut report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report, world::gc_report(), "the servers' own document");
    report["items"].as_array_mut().unwrap().truncate(2);
    let file = saved(&report);
    let (result, text) = run(&server, &format!("gc --from {} --yes", file.path().display())).await;
    assert_eq!(code(&result), 0, "{result:?}");
    let seen = seen.lock().unwrap().clone();
    assert_eq!(
        writes(&seen),
        [(
            "POST /v1/nodes/prod-eu/worker-17/reclaim".to_owned(),
            json!({"reason": "node-silent", "allocations": [48_170_010, 48_170_011]})
        )]
    );
    let of = |address: &str| text.lines().find(|line| line.contains(address)).unwrap().to_owned();
    assert!(of("10.10.0.91").ends_with("released") && of("10.10.0.92").ends_with("left alone"), "{text}");
    assert_eq!(seen.iter().filter(|line| line.contains("/v1/gc")).count(), 1, "the file is the report");
}

#[tokio::test]
async fn gc_divides_reclaims_by_node_and_size() {
    let (server, seen) = pretend(world::world).await;
    let mut report = world::gc_report();
    let line = report["items"][0].clone();
    let lines = (0_u64..600).map(|number| {
        let mut line = line.clone();
        line["allocation"] = (1_000 + number).into();
        line["address"] = format!("10.10.{}.{}", number / 250, number % 250).into();
        if number % 2 == 0 {
            line["node"]["name"] = "worker-18".into();
        }
        line
    });
    report["items"] = lines.collect();
    let file = saved(&report);
    let (result, _) = run(&server, &format!("gc --from {} --yes", file.path().display())).await;
    assert_eq!(code(&result), 0, "{result:?}");
    let sizes: Vec<usize> = writes(&seen.lock().unwrap())
        .iter()
        .map(|(_, body)| body["allocations"].as_array().unwrap().len())
        .collect();
    assert_eq!(sizes, [256, 44, 256, 44]);
    for wrong in ["gc --from /nowhere.json", "gc --yes --idempotency-key k", "gc --network lab"] {
        assert_eq!(code(&run(&server, wrong).await.0), 2, "{wrong}");
    }
}

#[tokio::test]
async fn a_node_that_is_gone_loses_its_attached_allocations_after_a_confirmation() {
    let (server, seen) = pretend(world::world).await;
    let (result, text) = run(&server, "node gone prod-eu/worker-17").await;
    assert_eq!(code(&result), 2);
    assert!(text.contains("api-77"), "{text}");
    let said = result.unwrap_err().text(false).unwrap();
    assert!(
        said.contains("2 attachments with 2 allocations") && said.contains("Held addresses stay"),
        "{said}"
    );
    assert!(writes(&seen.lock().unwrap()).iter().all(|(path, _)| path.ends_with("dry_run=true")));
    let (result, _) = run(&server, "node gone prod-eu/worker-17 --yes").await;
    assert_eq!(code(&result), 0, "{result:?}");
    let (path, body) = writes(&seen.lock().unwrap()).pop().unwrap();
    assert_eq!(path, "POST /v1/nodes/prod-eu/worker-17/reclaim");
    assert_eq!(body, json!({"reason": "node-gone", "allocations": [48_170_010, 48_170_011]}));
}

#[tokio::test]
async fn a_living_node_is_not_gone() {
    let (server, seen) = pretend(|method, path, before| match method {
        "POST" => {
            let alive = Problem::new(Code::InUse, "the agent of node prod-eu/worker-17 was heard 4 s ago");
            Some((409, serde_json::to_value(alive).unwrap()))
        }
        _ => world::world(method, path, before),
    })
    .await;
    let (result, _) = run(&server, "node gone prod-eu/worker-17 --yes").await;
    assert_eq!(code(&result), 1);
    let said = result.unwrap_err().text(false).unwrap();
    assert!(said.contains("heard 4 s ago") && said.contains("30s later"), "{said}");
    let sent = writes(&seen.lock().unwrap());
    assert!(sent.iter().all(|(path, _)| path.ends_with("dry_run=true")), "nothing was tried in earnest");
}

#[tokio::test]
async fn quarantines_are_narrowed_and_ended() {
    let (server, seen) = pretend(world::world).await;
    let line = "quarantine list --pool web --mac 52:54:00:aa:01:02 --node worker-3 --network default -o name";
    let (result, text) = run(&server, line).await;
    assert_eq!((code(&result), text.as_str()), (0, "10.10.0.79\n10.10.0.78\n"), "{result:?}");
    let asked = seen.lock().unwrap().last().unwrap().clone();
    for part in ["network=default", "pool=web", "mac=52%3A54", "reported_by=worker-3"] {
        assert!(asked.contains(part), "{part}: {asked}");
    }
    let (result, _) = run(&server, "quarantine end 10.10.0.79 --network lab").await;
    assert_eq!(code(&result), 0, "{result:?}");
    let asked = seen.lock().unwrap().last().unwrap().clone();
    assert!(asked.starts_with("DELETE /v1/quarantines/10.10.0.79?network=lab"), "{asked}");
}

#[tokio::test]
async fn tasks_are_those_of_the_leader() {
    let (server, _) = pretend(world::world).await;
    assert_eq!(code(&run(&server, "task show silent-nodes -o json").await.0), 0);
    let (result, _) = run(&server, "task show silent-node").await;
    assert_eq!(code(&result), 3);
    assert!(result.unwrap_err().text(false).unwrap().contains("Did you mean silent-nodes?"));
    let (server, _) = pretend(|method, path, before| match path.split('?').next() {
        Some("/v1/tasks") => Some((200, json!({"member": "n1", "leads": false, "tasks": []}))),
        _ => world::world(method, path, before),
    })
    .await;
    let (result, text) = run(&server, "task list").await;
    assert_eq!((code(&result), text.as_str()), (5, ""));
    assert!(result.unwrap_err().text(false).unwrap().contains("n1 does not lead"));
}

#[tokio::test]
async fn fsck_finds_each_class_and_applies_what_a_program_may_decide() {
    let (server, seen) = pretend(world::world).await;
    assert_eq!(code(&run(&server, "fsck --consistency stale").await.0), 2);
    let around = Environment { now: world::terminal(80).now, ..Environment::default() };
    let line = format!("--no-input -q --server {server} fsck -o json");
    let (result, text) = run_within(&around, &line).await;
    assert_eq!(code(&result), 7, "{result:?}");
    assert!(seen.lock().unwrap().iter().all(|line| line.starts_with("GET") && !line.contains("stale")));
    let report: Value = serde_json::from_str(&text).unwrap();
    let found: Vec<[&str; 3]> = report["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| [&one["class"], &one["kind"], &one["action"]["type"]].map(|word| word.as_str().unwrap()))
        .collect();
    assert_eq!(
        found,
        [
            ["reclaimable", "silent-node", "reclaim"],
            ["suspect", "silent-node", "none"],
            ["suspect", "silent-node", "none"],
            ["unknown", "foreign-host", "none"],
            ["unknown", "unverified-quarantine", "end-quarantine"],
            ["mismatched", "collision", "release-colliding"],
            ["mismatched", "agent-not-ready", "none"],
            ["mismatched", "inventory", "none"],
            ["mismatched", "no-agent", "none"],
        ]
    );
    let file = saved(&report);
    let apply = format!("fsck --apply {} --yes", file.path().display());
    let (result, text) = run(&server, &apply).await;
    assert_eq!(code(&result), 0, "{result:?}");
    assert!(text.contains("released") && text.contains("ended"), "{text}");
    let sent = writes(&seen.lock().unwrap());
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[0].1, json!({"reason": "node-silent", "allocations": [48_170_010]}));
    assert!(sent[1].0.starts_with("DELETE /v1/quarantines/10.10.0.78?network=default"), "{sent:?}");
    // An operator decides which of two hosts is legitimate.
    let (result, text) = run(&server, &format!("{apply} --take-newer -o json")).await;
    assert_eq!(code(&result), 0, "{result:?}");
    let done: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(done["items"][2]["result"], "released", "{done}");
    let released = writes(&seen.lock().unwrap()).pop().unwrap().0;
    assert!(released.starts_with("DELETE /v1/allocations/48190234"), "{released}");
    let (result, text) = run(&server, &format!("{apply} --take-newer --dry-run")).await;
    assert_eq!(code(&result), 0, "{result:?}");
    assert!(text.contains("would be released") && text.contains("would be ended"), "{text}");
    let tried = writes(&seen.lock().unwrap()).pop().unwrap().0;
    assert!(tried.contains("dry_run=true"), "{tried}");
    assert_eq!(parse("ipamctl fsck --take-newer").unwrap_err().exit_code(), 2);
}

#[tokio::test]
async fn fsck_leaves_alone_what_no_longer_fits() {
    let (server, seen) = pretend(world::world).await;
    let action = |mac: &str| {
        json!({"class": "unknown", "kind": "unverified-quarantine", "detail": "", "commands": [],
               "action": {"type": "end-quarantine", "network": "default", "address": "10.10.0.78", "mac": mac,
                          "since": "2026-11-20T10:06:07Z"}})
    };
    let colliding = json!({"class": "mismatched", "kind": "collision", "detail": "", "commands": [],
                           "action": {"type": "release-colliding", "network": "default",
                                      "address": "10.10.0.77", "allocation": 48_190_234,
                                      "mac": "52:54:00:aa:01:99"}});
    let report = json!({"items": [action("52:54:00:aa:01:99"), colliding], "revision": 1,
                        "checked": {"allocations": 0, "nodes": 0, "quarantines": 1}});
    let file = saved(&report);
    let line = format!("fsck --apply {} --yes --take-newer", file.path().display());
    let (result, text) = run(&server, &line).await;
    assert_eq!(code(&result), 7, "{result:?}");
    assert_eq!(text.matches("left alone").count(), 2, "{text}");
    assert!(writes(&seen.lock().unwrap()).is_empty(), "another host uses the address by now");
}

#[tokio::test]
async fn probes_are_set_and_inherited() {
    let (server, seen) = pretend(world::world).await;
    let line = "pool create db --subnet lan-10 --probe-conflicts true --probe-valid 5m --cooling-reserve 8";
    assert_eq!(code(&run(&server, line).await.0), 0);
    let body = writes(&seen.lock().unwrap()).pop().unwrap().1;
    assert_eq!(body["probing"], json!({"conflicts": true, "valid_ms": 300_000}));
    assert_eq!(body["cooling_reserve"], 8);
    for (line, field, value) in [
        ("network set lab --probe-gateway true", "probing", json!({"gateway": true})),
        ("subnet set lan-10 --probe-conflicts false", "probing", json!({"conflicts": false})),
        ("pool set web --cooling-reserve 4", "cooling_reserve", json!(4)),
    ] {
        assert_eq!(code(&run(&server, line).await.0), 0, "{line}");
        assert_eq!(writes(&seen.lock().unwrap()).pop().unwrap().1[field], value, "{line}");
    }
    assert_eq!(parse("ipamctl pool set web --probe-conflicts maybe").unwrap_err().exit_code(), 2);
}
