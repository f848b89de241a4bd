//! Lists: requested items and fields only, in the requested order, and every page from one state.

use std::net::SocketAddr;

use ipam_api::Code;
use serde_json::{Value, json};

use super::{read, with_pools};
use crate::support::Cluster;
use crate::support::ask::{allocate, allocate_request, put};
use crate::support::raw::ask;

/// Four pools with labels, and holders in two of them.
async fn filled() -> Cluster {
    let cluster = with_pools(1).await;
    let client = cluster.ask();
    put(&client, "networks", json!({"name": "lab", "description": "For Trying"})).await;
    put(
        &client,
        "subnets",
        json!({"name": "lan", "cidr": "10.1.0.0/24", "vlan": 7, "labels": {"team": "db"}}),
    )
    .await;
    put(&client, "subnets", json!({"name": "wan", "network": "lab", "cidr": "10.1.0.0/16"})).await;
    let pool = |name: &str, ranges: &str, team: &str| {
        let labels = json!({"team": team, "example.com/tier": "gold"});
        json!({"name": name, "subnet": "lan", "ranges": [ranges], "labels": labels, "managed_by": "argocd"})
    };
    put(&client, "pools", pool("small", "10.1.0.16/30", "web")).await;
    put(&client, "pools", pool("large", "10.1.0.32/28", "db")).await;
    put(&client, "reservations", json!({"name": "kept", "addresses": ["10.1.0.200-10.1.0.210"]})).await;
    for at in 0..3 {
        allocate(&client, &allocate_request(&format!("h{at}"), &["small", "web6"])).await.unwrap();
    }
    cluster
}

/// The names, or ids, on the only page of a list.
async fn names(to: SocketAddr, path: &str) -> Vec<String> {
    let page: Value = read(to, path).await.json();
    assert!(page.get("next").is_none(), "{path}");
    let name = |item: &Value| item["name"].as_str().or(item["address"].as_str()).unwrap().to_owned();
    page["items"].as_array().unwrap().iter().map(name).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_filter_picks_what_fits() {
    let cluster = filled().await;
    let to = cluster.members[0].client;
    for (path, expected) in [
        ("/v1/pools?name=small", vec!["small"]),
        ("/v1/pools?name=small&name=web&name=none", vec!["small", "web"]),
        ("/v1/pools?name=small&subnet=web", vec![]),
        ("/v1/pools?subnet=lan", vec!["large", "small"]),
        ("/v1/pools?family=6", vec!["web6"]),
        ("/v1/pools?free.lt=5", vec!["small"]),
        ("/v1/pools?size.ge=4&size.le=16", vec!["large", "small"]),
        ("/v1/pools?allocated.gt=2&subnet=lan", vec!["small"]),
        ("/v1/pools?managed_by=argocd&size=16", vec!["large"]),
        ("/v1/pools?default=false&terminating=true", vec![]),
        ("/v1/pools?strategy=next&ready=Serving&subnet=lan", vec!["large", "small"]),
        ("/v1/pools?labels=team=web", vec!["small"]),
        ("/v1/pools?labels=team,team!=web", vec!["large"]),
        ("/v1/pools?labels=example.com/tier%20in%20(gold,silver)", vec!["large", "small"]),
        ("/v1/pools?contains=10.1.0.40", vec!["large"]),
        ("/v1/pools?contains=2001:DB8:7::9", vec!["web6"]),
        ("/v1/pools?within=10.1.0.0/25", vec!["large", "small"]),
        ("/v1/pools?q=GOLD", vec!["large", "small"]),
        ("/v1/networks?q=for%20trying", vec!["lab"]),
        ("/v1/networks?subnets=1", vec!["lab"]),
        ("/v1/subnets?network=lab", vec!["wan"]),
        ("/v1/subnets?cidr=10.1.0.0/24", vec!["lan"]),
        ("/v1/subnets?cidr=10.1.0.0", vec!["lan", "wan"]),
        ("/v1/subnets?contains=10.1.0.9", vec!["lan", "wan"]),
        ("/v1/subnets?vlan=7", vec!["lan"]),
        ("/v1/subnets?labels=!team&family=4", vec!["wan", "web"]),
        ("/v1/reservations?contains=10.1.0.205&held=0", vec!["kept"]),
        ("/v1/reservations?within=10.1.0.0/30", vec![]),
        ("/v1/endpoints?name=h1&kind=host", vec!["h1"]),
        ("/v1/endpoints?contains=2001:db8:7::3", vec!["h1"]),
        ("/v1/endpoints?within=2001:db8:7::/64", vec![]),
        ("/v1/allocations?pool=small&name=h2", vec!["10.1.0.18/24"]),
        ("/v1/allocations?address=10.1.0.17", vec!["10.1.0.17/24"]),
        ("/v1/allocations?address=10.1.0.17/25", vec![]),
        ("/v1/allocations?endpoint=host/h0&network=default", vec!["10.1.0.16/24", "2001:db8:7::2/64"]),
        ("/v1/allocations?within=2001:db8:7::/64&endpoint=host/h0", vec!["2001:db8:7::2/64"]),
        ("/v1/allocations?lifecycle=held&checked=false&interface=eth0&node=none", vec![]),
        // Sorted.
        ("/v1/pools?sort=-size,name&family=4", vec!["web", "large", "small"]),
        ("/v1/pools?sort=status.counts.size&family=4", vec!["small", "large", "web"]),
        ("/v1/allocations?sort=-address&pool=small", vec!["10.1.0.18/24", "10.1.0.17/24", "10.1.0.16/24"]),
        ("/v1/subnets?sort=cidr&family=4", vec!["wan", "lan", "web"]),
    ] {
        assert_eq!(names(to, path).await, expected, "{path}");
    }
    let page: Value = read(to, "/v1/pools?limit=1&count=true&subnet=lan").await.json();
    assert_eq!((page["count"].as_u64(), page["items"].as_array().unwrap().len()), (Some(2), 1));
    let page: Value = read(to, "/v1/allocations?limit=1&count=true").await.json();
    assert_eq!(page["count"], 6);
    let page: Value =
        read(to, "/v1/pools?name=small&fields=name,status.counts.free,labels.example.com/tier").await.json();
    assert_eq!(
        page["items"],
        json!([{"name": "small", "status": {"counts": {"free": 1}}, "labels": {"example.com/tier": "gold"}}])
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_filter_is_refused_with_a_suggestion() {
    let cluster = filled().await;
    let to = cluster.members[0].client;
    let first: Value = read(to, "/v1/pools?limit=1").await.json();
    let cursor = first["next"].as_str().unwrap();
    for (path, code, says) in [
        ("/v1/pools?fre.lt=1", Code::InvalidFilter, "fre.lt"),
        ("/v1/pools?subnt=lan", Code::InvalidFilter, "did you mean \"subnet\"?"),
        ("/v1/pools?free.lt=few", Code::InvalidFilter, "a number"),
        ("/v1/pools?free.lt=-1", Code::InvalidFilter, "a number"),
        ("/v1/pools?name.lt=7", Code::InvalidFilter, "not a number"),
        ("/v1/pools?default=maybe", Code::InvalidFilter, "true or false"),
        ("/v1/pools?sort=colour", Code::InvalidFilter, "colour"),
        ("/v1/pools?sort=-sizes", Code::InvalidFilter, "did you mean \"size\"?"),
        ("/v1/pools?sort=", Code::InvalidFilter, "sort by"),
        ("/v1/pools?fields=status.cuonts", Code::InvalidFilter, "status.counts"),
        ("/v1/pools?labels=a%20b", Code::InvalidFilter, "label"),
        ("/v1/networks?contains=10.0.0.1", Code::InvalidFilter, "contains"),
        ("/v1/allocations?labels=a", Code::InvalidFilter, "labels"),
        ("/v1/allocations?endpoint=h0", Code::InvalidFilter, "an endpoint"),
        ("/v1/pools?contains=10.0.0", Code::InvalidFilter, "contains"),
        ("/v1/pools?within=10.0.0.1/8", Code::CidrHasHostBits, "10.0.0.0/8"),
        ("/v1/pools?limit=1&limit=2", Code::InvalidFilter, "twice"),
        ("/v1/pools?consistency=wild", Code::InvalidFilter, "wild"),
        ("/v1/pools?dry_run=true", Code::InvalidFilter, "dry_run"),
        ("/v1/pools?cursor=", Code::InvalidCursor, "malformed"),
        (&format!("/v1/pools?cursor={cursor}x"), Code::InvalidCursor, "malformed"),
        (&format!("/v1/pools?cursor={cursor}&name=small"), Code::InvalidCursor, "filters"),
        (&format!("/v1/subnets?cursor={cursor}"), Code::InvalidCursor, "list"),
    ] {
        let problem = ask(to, "GET", path, &[], &Value::Null).await.problem();
        assert_eq!(problem.code, code, "{path}: {problem}");
        assert!(problem.detail.contains(says), "{path}: {problem}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_pages_are_from_one_state_whatever_happens_meanwhile() {
    let cluster = with_pools(3).await;
    let client = cluster.ask();
    for at in 0..20 {
        put(&client, "networks", json!({"name": format!("n-{at:02}")})).await;
    }
    let (here, there) = (cluster.members[0].client, cluster.members[1].client);
    for path in
        ["/v1/networks?limit=3", "/v1/networks?limit=3&sort=-name", "/v1/networks?limit=3&q=n-&count=true"]
    {
        let before =
            read(here, &path.replace("limit=3", "limit=1000")).await.json::<Value>()["items"].clone();
        let mut items = Vec::new();
        let mut page: Value = read(here, path).await.json();
        let revision = page["revision"].clone();
        loop {
            items.extend(page["items"].as_array().unwrap().clone());
            assert_eq!(page["revision"], revision);
            let Some(next) = page.get("next").and_then(Value::as_str) else { break };
            // One is created, one deleted, one changed.
            let name = format!("n-new-{}", items.len());
            put(&client, "networks", json!({"name": name})).await;
            put(&client, "networks", json!({"name": "n-19", "description": name})).await;
            client.send(ipam_api::client::Call::delete(format!("/v1/networks/{name}"))).await.unwrap();
            let elsewhere = ask(there, "GET", &format!("{path}&cursor={next}"), &[], &Value::Null).await;
            assert_eq!((elsewhere.status, elsewhere.problem().code), (410, Code::CursorExpired));
            page = read(here, &format!("{path}&cursor={next}")).await.json();
        }
        assert_eq!(Value::Array(items), before, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_can_be_fresh_stale_or_not_older_than_a_write() {
    let mut cluster = with_pools(3).await;
    let leader = cluster.leader().await;
    let [one, other] = [(leader + 1) % 3, (leader + 2) % 3].map(|at| cluster.members[at].client);
    for at in 0..20 {
        let body = json!({"name": format!("n-{at:02}")});
        let made = ask(one, "POST", "/v1/networks", &[], &body).await;
        let path = format!("/v1/networks/n-{at:02}?at_least_revision={}", made.headers["revision"]);
        assert!(read(other, &path).await.headers.contains_key("stale-ms"));
        let path = format!("/v1/networks?name=n-{at:02}&at_least_revision={}", made.headers["revision"]);
        assert_eq!(names(other, &path).await.len(), 1);
    }
    let far = format!("/v1/networks/n-00?at_least_revision={}", (1_u64 << 53) - 1);
    let late = ask(other, "GET", &far, &[("budget-ms", "300")], &Value::Null).await;
    assert_eq!((late.status, late.problem().code), (503, Code::RevisionNotReached));
    // Without a majority, stale reads still work.
    cluster.members[leader].kill();
    cluster.members[(leader + 1) % 3].kill();
    let stale = read(other, "/v1/networks?consistency=stale&limit=1000").await;
    assert!(stale.headers.contains_key("stale-ms"));
    assert_eq!(stale.json::<Value>()["items"].as_array().unwrap().len(), 21);
    crate::support::raw::finds_no_leader(other, "GET", "/v1/networks/n-00", &Value::Null).await;
}
