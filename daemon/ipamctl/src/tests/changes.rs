//! Changes that are contradictory, or that the servers refuse.

use super::*;

#[tokio::test]
async fn flags_that_contradict_each_other_are_usage() {
    let (server, seen) = pretend(world::world).await;
    for (line, one, other) in [
        (
            "pool set web --add-range 10.10.0.40-10.10.0.50 --remove-range 10.10.0.45",
            "--add-range 10.10.0.40-10.10.0.50",
            "--remove-range 10.10.0.45",
        ),
        (
            "pool set web --exclude 10.10.0.77 --remove-exclude 10.10.0.77",
            "--exclude 10.10.0.77",
            "--remove-exclude 10.10.0.77",
        ),
        ("pool set web --label env=prod --label env-", "--label env=prod", "--label env-"),
        ("pool set web --label env=prod --label env=lab", "--label env=prod", "--label env=lab"),
        ("pool create web --subnet lan --label a=b --label a=c", "--label a=b", "--label a=c"),
        ("node set worker-3 --annotation a=b --annotation a-", "--annotation a=b", "--annotation a-"),
        (
            "pool set web --route 10.9.0.0/16=10.10.0.2 --remove-route 10.9.0.0/16",
            "--route 10.9.0.0/16",
            "--remove-route 10.9.0.0/16",
        ),
        ("subnet set lan --dns 10.0.0.1 --remove-dns 10.0.0.1", "--dns 10.0.0.1", "--remove-dns 10.0.0.1"),
        (
            "reservation set printers --add 10.10.0.20-10.10.0.22 --remove 10.10.0.21",
            "--add 10.10.0.20-10.10.0.22",
            "--remove 10.10.0.21",
        ),
    ] {
        let (result, text) = run(&server, line).await;
        assert_eq!((code(&result), text.as_str()), (2, ""), "{line}");
        let said = result.unwrap_err().text(false).unwrap();
        assert!(said.contains(&format!("{one} and {other} contradict each other")), "{line}: {said}");
    }
    for (line, says) in [
        (
            "namespace set prod-eu/web --quota-of apps/Deployment/a,ipv4=4 --quota-of apps/Deployment/a,ipv4=5",
            2,
        ),
        (
            "namespace set prod-eu/web --quota-of apps/Deployment/a,ipv4=4 --quota-of apps/Deployment/b,ipv4=5",
            0,
        ),
        ("namespace create web --quota-of Job/a,ipv4=4 --quota-of Job/a,ipv6=5", 2),
    ] {
        let (result, _) = run(&server, line).await;
        assert_eq!(code(&result), says, "{line}: {result:?}");
        let said = result.err().and_then(|failure| failure.text(false)).unwrap_or_default();
        assert!(said.is_empty() || said.contains("two quotas for "), "{line}: {said}");
    }
    let writes = seen.lock().unwrap().iter().filter(|line| !line.starts_with("GET")).count();
    assert_eq!(writes, 1, "only the one that can be meant");
    // Repeated values are no contradiction, and neither are disjoint ranges.
    let line = "pool set web --add-range 10.10.0.40 --remove-range 10.10.0.50 --label a=b --label a=b";
    assert_eq!(code(&run(&server, line).await.0), 0);
}

#[tokio::test]
async fn held_addresses_stay_in_their_pool() {
    let (server, seen) = pretend(|method, path, _| match (method, path) {
        ("GET", "/v1/pools/web") => Some((200, pool("web", 2))),
        ("PATCH", _) => {
            let problem = Problem::new(Code::InUse, "2 addresses that pool web would lose are held");
            Some((409, serde_json::to_value(problem.help("Release them first.")).unwrap()))
        }
        _ => None,
    })
    .await;
    for line in [
        "pool set web --remove-range 10.10.0.50-10.10.0.60",
        "pool set web --exclude 10.10.0.50 --yes",
        "pool set web --exclude 10.10.0.50 --dry-run",
    ] {
        let (result, _) = run(&server, line).await;
        assert_eq!(code(&result), 1, "{line}");
        let said = result.unwrap_err().text(false).unwrap();
        for part in ["in use: 2 addresses", "ipamctl allocation list --pool web", "ipamctl release", "drain"]
        {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(!said.contains("--yes"), "{said}");
        assert!(seen.lock().unwrap().last().unwrap().starts_with("PATCH"), "the servers know what is held");
    }
}

#[tokio::test]
async fn holders_are_not_named_while_the_pools_with_a_gateway_are_unknown() {
    let (server, seen) = pretend(|method, path, before| {
        if path.starts_with("/v1/pools?") {
            let refused = Problem::new(Code::Forbidden, "this token may not read pools");
            return Some((403, serde_json::to_value(refused).unwrap()));
        }
        world::world(method, path, before)
    })
    .await;
    let (result, _) = run(&server, "subnet set lan-10 --gateway 10.10.0.2").await;
    assert_eq!(code(&result), 0, "the change is complete: {result:?}");
    let seen = seen.lock().unwrap();
    let count = |start: &str| seen.iter().filter(|line| line.starts_with(start)).count();
    assert_eq!((count("PATCH /v1/subnets/lan-10"), count("GET /v1/pools?")), (1, 1), "{seen:?}");
    assert_eq!(count("GET /v1/allocations"), 0, "{seen:?}");
}

#[tokio::test]
async fn applying_what_is_so_already_prints_a_document_too() {
    let (server, _) = pretend(world::world).await;
    let file = tempfile::NamedTempFile::with_suffix(".yaml").unwrap();
    let (_, web) = run(&server, "reservation show printers -o yaml").await;
    std::fs::write(file.path(), format!("kind: reservation\n{web}")).unwrap();
    let apply = format!("apply -f {}", file.path().display());
    let (result, text) = run(&server, &format!("{apply} -o json")).await;
    assert_eq!(code(&result), 0, "{result:?}");
    assert_eq!(
        serde_json::from_str::<Value>(&text).unwrap(),
        json!({"results": [], "revision": 48_211_907}),
        "there was nothing to change"
    );
}
