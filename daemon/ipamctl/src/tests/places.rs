//! `--network`, `--realm` and `--namespace`: a specified flag filters or is refused.

use super::*;

/// Two pools in networks of their own, and lists that are empty.
fn two_networks(method: &str, path: &str, _: usize) -> Option<(u16, Value)> {
    let (place, _) = path.split_once('?').unwrap_or((path, ""));
    let pool_in = |name: &str, network: &str| {
        let mut pool = pool(name, 0);
        pool["network"] = network.into();
        pool
    };
    match (method, place) {
        ("GET", "/v1/pools") => {
            Some((200, json!({"items": [pool_in("qq", "q-net"), pool_in("web", "default")], "revision": 7})))
        }
        ("GET", "/v1/pools/qq" | "/v1/pools/qq/map") => Some((200, pool_in("qq", "q-net"))),
        ("GET", "/v1/subnets/q-lan") => Some((200, json!({"name": "q-lan", "network": "q-net"}))),
        ("GET", "/v1/networks/lab") => {
            Some((200, json!({"name": "lab", "meta": meta(1), "status": {"subnets": 0, "allocated": 0}})))
        }
        ("GET", "/v1/allocations/4819") => Some((200, allocation("held"))),
        ("GET", "/v1/prefixes/5") => world::world("GET", "/v1/prefixes/5", 0),
        ("GET", list) if list.matches('/').count() == 2 => Some((200, json!({"items": [], "revision": 7}))),
        ("POST", "/v1/pools") => Some((201, pool_in("new", "lab"))),
        _ => None,
    }
}

#[tokio::test]
async fn a_list_is_narrowed_by_what_the_command_line_says() {
    let (server, seen) = pretend(two_networks).await;
    for (line, asked) in [
        ("-n selns endpoint list", "/v1/endpoints?namespace=selns&limit=1000"),
        ("endpoint list --namespace selns --kind pod", "/v1/endpoints?namespace=selns&kind=pod&limit=1000"),
        ("--realm prod-eu endpoint list", "/v1/endpoints?realm=prod-eu&limit=1000"),
        ("allocation list --realm r -n selns", "/v1/allocations?realm=r&namespace=selns&limit=1000"),
        ("node list --realm r", "/v1/nodes?realm=r&limit=1000"),
        ("--realm r namespace list", "/v1/namespaces?realm=r&limit=1000"),
        ("prefix list --realm r --network lab", "/v1/prefixes?network=lab&realm=r&limit=1000"),
        ("pool list --network lab --subnet lan", "/v1/pools?network=lab&subnet=lan&limit=1000"),
        ("subnet list --network lab", "/v1/subnets?network=lab&limit=1000"),
        ("reservation list --network lab", "/v1/reservations?network=lab&limit=1000"),
    ] {
        let (result, _) = run(&server, line).await;
        assert_eq!(code(&result), 0, "{line}: {result:?}");
        assert_eq!(*seen.lock().unwrap().last().unwrap(), format!("GET {asked}"), "{line}");
    }
}

#[tokio::test]
async fn an_unsupported_filter_of_a_list_is_refused() {
    let (server, seen) = pretend(two_networks).await;
    for (line, flag) in [
        ("endpoint list --network lab", "--network"),
        ("node list -n web", "--namespace"),
        ("namespace list -n web", "--namespace"),
        ("namespace list --network lab", "--network"),
        ("pool list --realm r", "--realm"),
        ("pool list -n web", "--namespace"),
        ("subnet list -n web", "--namespace"),
        ("reservation list --realm r", "--realm"),
        ("network list --network lab", "--network"),
        ("token list --realm r", "--realm"),
        ("prefix list -n web", "--namespace"),
        ("events -n web", "--namespace"),
    ] {
        let (result, text) = run(&server, line).await;
        assert_eq!((code(&result), text.as_str()), (2, ""), "{line}");
        let said = result.unwrap_err().text(false).unwrap();
        assert!(said.contains(flag), "{line}: {said}");
    }
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_contexts_realm_narrows_nothing() {
    let (server, seen) = pretend(two_networks).await;
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("ipamctl")).unwrap();
    std::fs::write(
        home.path().join("ipamctl/config.toml"),
        format!(
            "current = 'a'\n[context.a]\nservers = ['{server}']\nrealm = 'r'\nnamespace = 'n'\nnetwork = 'w'\n"
        ),
    )
    .unwrap();
    let around = Environment::of([("XDG_CONFIG_HOME", home.path().to_str().unwrap())]);
    for (line, asked) in [
        ("endpoint list", "/v1/endpoints?limit=1000"),
        ("node list", "/v1/nodes?limit=1000"),
        // The network of the context filters the listed objects.
        ("allocation list", "/v1/allocations?network=w&limit=1000"),
    ] {
        assert_eq!(code(&run_within(&around, line).await.0), 0, "{line}");
        assert_eq!(*seen.lock().unwrap().last().unwrap(), format!("GET {asked}"));
    }
    // The network of the context does not contradict a named object.
    assert_eq!(code(&run_within(&around, "pool show qq -o name").await.0), 0);
}

#[tokio::test]
async fn a_network_that_contradicts_the_object_is_refused() {
    let (server, seen) = pretend(two_networks).await;
    for line in [
        "pool show qq --network lab",
        "pool set qq --disable --network lab",
        "pool delete qq --network lab",
        "pool map qq --network lab",
        "pool split qq --into b --range 10.0.0.1 --network lab",
        "subnet show q-lan --network lab",
        "subnet delete q-lan --network lab",
        "allocate --endpoint host/a --pool qq --network lab",
        "allocate --endpoint host/a --pool q* --network lab",
        "allocate --endpoint host/a --subnet q-lan --network lab",
        "explain --endpoint host/a --pool qq --network lab",
        "prefix allocate rack --pool qq --length 28 --network lab",
        "prefix release 5 --network lab",
        "allocation show 4819 --network lab",
        "release 4819 --network lab",
    ] {
        let (result, text) = run(&server, line).await;
        assert_eq!((code(&result), text.as_str()), (2, ""), "{line}: {result:?}");
        let said = result.unwrap_err().text(false).unwrap();
        assert!(said.contains("is in network ") && said.contains(", not in lab"), "{line}: {said}");
    }
    for line in [
        "network show lab --network lab",
        "endpoint delete host/a --network lab",
        "release --endpoint host/a --network lab",
        "renew --endpoint host/a --network lab",
        "allocate --endpoint host/a --address 10.0.0.1 --network lab",
    ] {
        assert_eq!(code(&run(&server, line).await.0), 2, "{line}");
    }
    assert!(seen.lock().unwrap().iter().all(|line| line.starts_with("GET")));
    assert_eq!(code(&run(&server, "pool show qq --network q-net -o name").await.0), 0);
    // The servers check the network of the subnet.
    assert_eq!(code(&run(&server, "pool create new --subnet lan --network lab").await.0), 0);
    assert!(seen.lock().unwrap().last().unwrap().contains(r#""network":"lab""#));
}

#[tokio::test]
async fn a_name_and_a_flag_that_say_different_things_are_refused() {
    let (server, seen) = pretend(two_networks).await;
    for line in [
        "endpoint show pod/prod-eu/web/a --realm lab",
        "endpoint delete pod/web/a -n shop",
        "node show prod-eu/worker-3 --realm lab",
        "namespace delete prod-eu/web --realm lab",
    ] {
        let (result, _) = run(&server, line).await;
        assert_eq!(code(&result), 2, "{line}");
    }
    assert!(seen.lock().unwrap().is_empty());
    assert_eq!(code(&run(&server, "endpoint show pod/web/a -n web").await.0), 3);
}

#[tokio::test]
async fn wildcards_go_to_the_families_of_the_pools_that_they_stand_for() {
    let (server, seen) = pretend(|method, path, _| match (method, path) {
        ("GET", path) if path.starts_with("/v1/pools?") => {
            let mut six = pool("web6", 0);
            six["status"]["family"] = 6.into();
            six["ranges"] = json!([]);
            six["status"]["cidr"] = "2001:db8::/64".into();
            Some((200, json!({"items": [pool("web-a", 0), six, pool("lab", 0)], "revision": 7})))
        }
        ("POST", _) => world::world("POST", "/v1/allocations", 0),
        _ => None,
    })
    .await;
    for (pattern, v4, v6) in [("we*", true, true), ("web-?", true, false), ("web[0-9]", false, true)] {
        let line = format!("allocate --endpoint host/a --pool {pattern} -o json");
        assert_eq!(code(&run(&server, &line).await.0), 0, "{pattern}");
        let sent = seen.lock().unwrap().last().unwrap().clone();
        let sent: Value = serde_json::from_str(sent.strip_prefix("POST /v1/allocations ").unwrap()).unwrap();
        let named = |family: &str| sent["interfaces"][0][family] == json!([pattern]);
        assert_eq!((named("ipv4_pools"), named("ipv6_pools")), (v4, v6), "{pattern}: {sent}");
    }
    let (result, _) = run(&server, "allocate --endpoint host/a --pool x*").await;
    assert_eq!(code(&result), 3);
    assert!(result.unwrap_err().text(false).unwrap().contains("no pool matches x*"));
}
