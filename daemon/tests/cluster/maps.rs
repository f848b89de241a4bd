//! Maps of pools, subnets and networks, and holders, over HTTP and with `ipamctl`.

use serde_json::{Value, json};

use crate::cluster::command_line::ipamctl;
use crate::support::Cluster;
use crate::support::ask::{allocate, allocate_request, put};
use crate::support::raw::ask;

async fn world() -> Cluster {
    let cluster = Cluster::up(1).await;
    let client = cluster.ask();
    put(&client, "subnets", json!({"name": "lan", "cidr": "10.1.0.0/28", "gateway": "10.1.0.1"})).await;
    put(&client, "subnets", json!({"name": "lan6", "cidr": "2001:db8::/48"})).await;
    let web =
        json!({"name": "web", "subnet": "lan", "ranges": ["10.1.0.0-10.1.0.9"], "exclude": ["10.1.0.8"]});
    put(&client, "pools", web).await;
    put(&client, "pools", json!({"name": "web6", "subnet": "lan6"})).await;
    for name in ["h1", "h2", "h3"] {
        allocate(&client, &allocate_request(name, &["web", "web6"])).await.unwrap();
    }
    put(&client, "reservations", json!({"name": "kept", "addresses": ["10.1.0.3", "10.1.0.6"]})).await;
    cluster
}

fn runs(map: &Value) -> Vec<String> {
    let run = |run: &Value| {
        let word = |field: &str| run[field].as_str().unwrap_or("-").to_owned();
        let reserved = if run["reserved_while_held"] == true { " reserved" } else { "" };
        format!("{}-{} {}{reserved} {}", word("first"), word("last"), word("state"), word("pool"))
    };
    map["items"].as_array().unwrap().iter().map(run).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn maps_say_what_is_where() {
    let cluster = world().await;
    let to = cluster.members[0].client;
    let get = async |path: &str| ask(to, "GET", path, &[], &Value::Null).await;
    let map: Value = get("/v1/pools/web/map").await.json();
    assert_eq!(
        runs(&map),
        [
            "10.1.0.0-10.1.0.1 excluded web",
            "10.1.0.2-10.1.0.2 allocated web",
            "10.1.0.3-10.1.0.3 allocated reserved web",
            "10.1.0.4-10.1.0.4 allocated web",
            "10.1.0.5-10.1.0.5 free web",
            "10.1.0.6-10.1.0.6 reserved web",
            "10.1.0.7-10.1.0.7 free web",
            "10.1.0.8-10.1.0.8 excluded web",
            "10.1.0.9-10.1.0.9 free web",
        ]
    );
    let shown: Value = get("/v1/pools/web").await.json();
    assert_eq!(shown["status"]["reserved_while_held"], 1);
    let address: Value = get("/v1/addresses/10.1.0.3").await.json();
    assert_eq!(
        (address["state"].as_str(), address["reservation"].as_str()),
        (Some("allocated"), Some("kept"))
    );

    let page: Value = get("/v1/pools/web/map?state=free&limit=2").await.json();
    assert_eq!(runs(&page), ["10.1.0.5-10.1.0.5 free web", "10.1.0.7-10.1.0.7 free web"]);
    let next = format!("/v1/pools/web/map?state=free&limit=2&from={}", page["next"].as_str().unwrap());
    let page: Value = get(&next).await.json();
    assert_eq!((runs(&page), page.get("next")), (vec!["10.1.0.9-10.1.0.9 free web".to_owned()], None));

    let map: Value = get("/v1/subnets/lan/map?from=10.1.0.7").await.json();
    assert_eq!(
        runs(&map),
        [
            "10.1.0.7-10.1.0.7 free web",
            "10.1.0.8-10.1.0.8 excluded -",
            "10.1.0.9-10.1.0.9 free web",
            "10.1.0.10-10.1.0.15 unmanaged -",
        ]
    );
    let map: Value = get("/v1/pools/web6/map").await.json();
    assert_eq!(map["items"][2]["size"], ipam_api::limits::JSON_INTEGER_MAX, "{map}");
    let map: Value = get("/v1/networks/default/map?limit=1").await.json();
    assert_eq!((map["items"][0]["subnet"].as_str(), map["next"].as_str()), (Some("lan"), Some("2001:db8::")));
    assert_eq!(map["items"][0]["counts"]["free"], 3);
    let network: Value = get("/v1/networks/default").await.json();
    assert_eq!(
        (&network["status"]["counts"]["allocated"], &network["status"]["counts"]["saturated"]),
        (&json!(6), &json!(true))
    );
    let holders: Value = get("/v1/pools/web/holders").await.json();
    assert_eq!(holders["items"], json!([{"realm": "default", "namespace": "default", "allocated": 3}]));
    assert_eq!(holders["complete"], true);

    for (path, status, code, says) in [
        ("/v1/pools/wbe/map", 404, "not-found", "did you mean web?"),
        ("/v1/pools/WEB/holders", 404, "not-found", "WEB"),
        ("/v1/subnets/x/map", 404, "not-found", "subnet x"),
        ("/v1/networks/x/map", 404, "not-found", "network x"),
        ("/v1/pools/web/map?limit=0", 400, "invalid-filter", "1 to 1000"),
        ("/v1/pools/web/map?limit=1001", 400, "invalid-filter", "1 to 1000"),
        ("/v1/pools/web/map?limit=x", 400, "invalid-filter", "limit"),
        ("/v1/pools/web/map?state=busy", 400, "invalid-filter", "busy"),
        ("/v1/pools/web/map?form=10.1.0.1", 400, "invalid-filter", "from"),
        ("/v1/pools/web/map?from=10.1", 422, "invalid-field", "10.1"),
        ("/v1/pools/web/map?from=2001:db8::1", 422, "family-mismatch", "IPv4"),
        ("/v1/networks/default/map?state=free", 400, "invalid-filter", "state"),
        ("/v1/pools/web/holders?limit=0", 400, "invalid-filter", "1 to 1000"),
    ] {
        let refused = get(path).await;
        let problem: Value = refused.json();
        assert_eq!((refused.status, problem["code"].as_str().unwrap()), (status, code), "{path}: {problem}");
        assert!(problem.to_string().contains(says), "{path}: {problem}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_sees_what_is_free_and_who_holds_the_rest() {
    let cluster = world().await;
    let servers = cluster.urls();
    let done = async |line: &str| ipamctl(&servers, line).await.ends(0).stdout;
    let shown = done("pool describe web").await;
    assert!(shown.contains("free         10.1.0.5  10.1.0.7  10.1.0.9\n"), "{shown}");
    assert!(shown.contains("top holders  default 3\n"), "{shown}");
    assert!(
        shown.contains("1 address is reserved while held or cooling, and not allocated again"),
        "{shown}"
    );
    let map = done("pool map web --state allocated").await;
    assert_eq!(
        map,
        "\
FIRST     LAST      SIZE  STATE
10.1.0.2  10.1.0.2     1  allocated
10.1.0.3  10.1.0.3     1  allocated, reserved
10.1.0.4  10.1.0.4     1  allocated
"
    );
    assert!(done("pool map web6").await.contains("2001:db8::4"));
    assert!(done("subnet map lan --from 10.1.0.10").await.contains("unmanaged"));
    assert!(done("network map default").await.contains("10.1.0.0/28"));
    ipamctl(&servers, "pool map wbe").await.ends(3);
    ipamctl(&servers, "pool map web --state busy").await.ends(2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pools_are_split_and_drained_while_addresses_are_held() {
    let cluster = world().await;
    let (to, client) = (cluster.members[0].client, cluster.ask());
    let post = async |path: &str, body: Value| ask(to, "POST", path, &[], &body).await;
    let get = async |path: &str| ask(to, "GET", path, &[], &Value::Null).await.json::<Value>();
    let before = get("/v1/allocations").await;
    let split = json!({"into": "web-b", "ranges": ["10.1.0.4-10.1.0.9"]});
    let tried = post("/v1/pools/web/split?dry_run=true", split.clone()).await;
    assert_eq!((tried.status, get("/v1/pools").await["items"].as_array().unwrap().len()), (201, 2));
    let done = post("/v1/pools/web/split", split.clone()).await;
    let shown: Value = done.json();
    assert_eq!((done.status, shown["status"]["counts"]["allocated"].as_u64()), (201, Some(1)), "{shown}");
    assert_eq!(shown["exclude"], json!(["10.1.0.8"]));
    let after = get("/v1/allocations").await;
    let ids = |list: &Value| -> Vec<u64> {
        list["items"].as_array().unwrap().iter().map(|item| item["id"].as_u64().unwrap()).collect()
    };
    assert_eq!(ids(&before), ids(&after));
    assert_eq!(get("/v1/addresses/10.1.0.4").await["pool"], "web-b");
    let events = get("/v1/events?pool=web&reverse=true&limit=20").await;
    assert!(events.to_string().contains("pool.split"), "{events}");

    let tried: Value = post("/v1/pools/web/drain?dry_run=true", json!({"to": "web-b"})).await.json();
    assert_eq!((tried["held"].as_u64(), tried["affected"].as_array().unwrap().len()), (Some(2), 2));
    assert_eq!(tried["affected"][0]["lifecycle"], "held");
    assert_eq!(get("/v1/pools/web").await.get("drains_to"), None);
    let done = post("/v1/pools/web/drain", json!({"to": "web-b"})).await;
    assert_eq!(done.status, 200, "{done:?}");
    let drained = get("/v1/pools/web").await;
    assert_eq!(
        (&drained["drains_to"], &drained["status"]["conditions"][0]["reason"]),
        (&json!("web-b"), &json!("Drained"))
    );
    // A request for the drained pool gets addresses of the other, and the same ones when repeated.
    for _ in 0..2 {
        let given = allocate(&client, &allocate_request("h4", &["web"])).await.unwrap();
        assert_eq!(given.interfaces[0].addresses[0].pool.as_str(), "web-b");
        assert_eq!(given.interfaces[0].addresses[0].address.addr().to_string(), "10.1.0.5");
    }

    for (path, body, status, code, says) in [
        ("/v1/pools/web/split", split, 409, "already-exists", "web-b"),
        (
            "/v1/pools/web/split",
            json!({"into": "x", "ranges": ["10.1.0.4"]}),
            422,
            "conflicting-fields",
            "not in the ranges",
        ),
        ("/v1/pools/web/split", json!({"into": "x", "ranges": []}), 422, "invalid-field", "needs ranges"),
        ("/v1/pools/web/split", json!({"into": "X", "ranges": ["10.1.0.2"]}), 422, "invalid-field", "X"),
        ("/v1/pools/web/split", json!({"into": "x"}), 422, "invalid-field", "ranges"),
        ("/v1/pools/web/split", json!({"into": "x", "range": ["10.1.0.2"]}), 400, "unknown-field", "ranges"),
        ("/v1/pools/none/split", json!({"into": "x", "ranges": ["10.1.0.2"]}), 404, "not-found", "none"),
        ("/v1/pools/web/drain", json!({"to": "web"}), 422, "conflicting-fields", "to itself"),
        ("/v1/pools/web/drain", json!({"to": "web6"}), 422, "family-mismatch", "web6"),
        ("/v1/pools/web/drain", json!({"to": "nowhere"}), 404, "not-found", "nowhere"),
        ("/v1/pools/web-b/drain", json!({"to": "web"}), 422, "conflicting-fields", "itself drained"),
        ("/v1/pools/nowhere/drain", json!({"to": "web"}), 404, "not-found", "nowhere"),
        ("/v1/pools/web/drain", json!({}), 422, "invalid-field", "to"),
    ] {
        let refused = post(path, body).await;
        let problem: Value = refused.json();
        assert_eq!((refused.status, problem["code"].as_str().unwrap()), (status, code), "{path}: {problem}");
        assert!(problem.to_string().contains(says), "{path}: {problem}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_splits_and_drains() {
    let cluster = world().await;
    let servers = cluster.urls();
    let done = async |line: &str| ipamctl(&servers, line).await.ends(0);
    done("pool split web --into web-b --range 10.1.0.5-10.1.0.9").await;
    let tried = done("pool drain web --to web-b --dry-run").await;
    assert!(tried.stdout.contains("10.1.0.2") && tried.stdout.contains("held"), "{tried:?}");
    assert!(tried.stderr.contains("3 addresses are held in it"), "{tried:?}");
    let unasked = ipamctl(&servers, "pool drain web --to web-b").await.ends(2);
    assert!(
        unasked.stderr.contains("3 addresses are held") && unasked.stderr.contains("--yes"),
        "{unasked:?}"
    );
    done("pool drain web --to web-b --yes").await;
    let again = done("pool drain web --to web-b").await;
    assert!(again.stderr.contains("is already drained to web-b; nothing was changed"), "{again:?}");
    assert!(done("pool show web").await.stdout.contains("requests are redirected to web-b"));
    assert!(done("allocate --endpoint host/h9 --pool web").await.stdout.contains("10.1.0.5"));
    done("pool set web --no-drain").await;
    assert!(!done("pool show web").await.stdout.contains("stands in"));
    ipamctl(&servers, "pool drain wbe --to web-b").await.ends(3);
    ipamctl(&servers, "pool drain web").await.ends(2);
}

/// 42 (I00009, I00010): of a hundred identical creations through all members exactly one succeeds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_hundred_identical_creations_exactly_one_succeeds() {
    let cluster = Cluster::up(3).await;
    for (path, body) in [
        ("/v1/subnets", json!({"name": "lan", "cidr": "10.1.0.0/24"})),
        ("/v1/pools", json!({"name": "web", "subnet": "lan"})),
    ] {
        let mut asked = tokio::task::JoinSet::new();
        for at in 0..100 {
            let (to, body) = (cluster.members[at % 3].client, body.clone());
            asked.spawn(async move { ask(to, "POST", path, &[], &body).await.status });
        }
        let mut answers = asked.join_all().await;
        answers.sort_unstable();
        assert_eq!((answers[0], answers[1], answers[99]), (201, 409, 409), "{path}");
    }
}
