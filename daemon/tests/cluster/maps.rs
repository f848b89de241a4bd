//! Maps of pools, subnets and networks, and who holds what, over HTTP and by hand.

use serde_json::{Value, json};

use crate::command_line::ipamctl;
use crate::support::Cluster;
use crate::support::ask::{allocate, put, wish};
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
        allocate(&client, &wish(name, &["web", "web6"])).await.unwrap();
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
    assert!(shown.contains("1 address is held or at rest though reserved, and not given again"), "{shown}");
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
