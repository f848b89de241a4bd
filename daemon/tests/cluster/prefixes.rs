//! Prefixes on real members: delegated once, refreshed, ended by log time. Over HTTP and with `ipamctl`.

use ipam_api::client::Call;
use ipam_api::event::{AddressHistory, EventPage};
use ipam_api::request::{Delegated, PrefixReleased};
use ipam_api::resource::{Page, Prefix};
use ipam_api::time::Timestamp;
use ipam_api::{Code, Problem};
use serde_json::{Value, json};

use crate::cluster::command_line::ipamctl;
use crate::support::ask::{allocate, allocate_request, get, known, put};
use crate::support::{Cluster, LONG, until};

async fn pool(cluster: &Cluster) {
    put(&cluster.ask(), "subnets", json!({"name": "trench", "cidr": "172.16.0.0/16"})).await;
    let pool = json!({"name": "trench", "subnet": "trench", "allow_edges": true, "cooling_ms": 0});
    put(&cluster.ask(), "pools", pool).await;
}

async fn delegate(cluster: &Cluster, member: usize, body: Value) -> Result<Delegated, Problem> {
    let call = Call::post("/v1/prefixes").json(&body).unwrap().repeatable().within(LONG);
    cluster.members[member].ask().call(call).await
}

fn cidr(prefix: &Prefix) -> String {
    prefix.cidr.unwrap().to_string()
}

fn connection(node: &str, owner: &str) -> Value {
    json!({
        "pool": "trench",
        "through": [{"owner": "conduit-a", "length": 20}, {"owner": node, "length": 24, "keep_edges": true}],
        "owner": owner, "length": 32,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_owners_get_one_prefix_each_on_any_member() {
    let cluster = Cluster::up(3).await;
    pool(&cluster).await;
    // Forty requests for ten connections on two nodes: each is asked for twice, of different members.
    let asked = (0..40).map(|i| {
        let cluster = &cluster;
        let node = format!("node-{}", i % 2);
        async move { delegate(cluster, i % 3, connection(&node, &format!("c{}", i % 20))).await.unwrap() }
    });
    let answers = futures::future::join_all(asked).await;
    let mut given: Vec<(String, String)> =
        answers.iter().map(|one| (one.prefix.path.clone(), cidr(&one.prefix))).collect();
    given.sort();
    given.dedup();
    assert_eq!(given.len(), 20, "the same for who asks twice, another for each: {given:?}");
    let mut cidrs: Vec<_> = given.iter().map(|(_, cidr)| cidr.clone()).collect();
    cidrs.sort();
    cidrs.dedup();
    assert_eq!(cidrs.len(), 20);
    let fresh = answers.iter().filter(|one| !one.repeated).count();
    assert_eq!(fresh, 20, "every connection is new once");
    for node in ["172.16.0.", "172.16.1."] {
        let of_node = cidrs.iter().filter(|cidr| cidr.starts_with(node)).count();
        assert_eq!(of_node, 10, "{cidrs:?}");
        assert!(!cidrs.contains(&format!("{node}0/32")), "a node keeps its edges");
    }
    // Addresses inside aren't allocated; a request for one gets the owner of the prefix.
    let address = "172.16.0.1".parse().unwrap();
    let mut inside = allocate_request("h", &["trench"]);
    inside.interfaces[0].addresses = vec![address];
    let problem = allocate(&cluster.ask(), &inside).await.unwrap_err();
    assert_eq!(problem.code, Code::AddressTaken);
    assert!(problem.detail.contains("inside prefix 172.16.0.1/32"), "{problem:?}");
    let held = known(&cluster.ask(), address).await;
    assert_eq!((held.state.as_str(), held.allocation), ("allocated", None));
    assert_eq!(cidr(&held.prefix.unwrap()), "172.16.0.1/32");
    let outside = allocate(&cluster.ask(), &allocate_request("h", &["trench"])).await.unwrap();
    assert_eq!(outside.interfaces[0].addresses[0].address.addr().to_string(), "172.16.16.0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prefixes_are_listed_released_and_remembered() {
    let cluster = Cluster::up(1).await;
    pool(&cluster).await;
    let first = delegate(&cluster, 0, connection("node-1", "c1")).await.unwrap();
    let [conduit, node] = first.through.as_slice() else { panic!("{first:?}") };
    assert_eq!(cidr(conduit), "172.16.0.0/20");
    assert_eq!((node.parent, first.prefix.parent), (Some(conduit.id), Some(node.id)));
    delegate(&cluster, 0, json!({"parent": node.id, "owner": "c2", "length": 32})).await.unwrap();
    let client = cluster.ask();
    for (query, paths) in [
        (format!("parent={}", node.id), vec!["conduit-a/node-1/c1", "conduit-a/node-1/c2"]),
        ("contains=172.16.0.2".to_owned(), vec!["conduit-a", "conduit-a/node-1", "conduit-a/node-1/c2"]),
        ("owner=node-1&pool=trench&realm=default".to_owned(), vec!["conduit-a/node-1"]),
        ("cidr=172.16.0.0/24".to_owned(), vec!["conduit-a/node-1"]),
        ("realm=prod".to_owned(), vec![]),
    ] {
        let page: Page<Prefix> = get(&client, &format!("/v1/prefixes?{query}")).await.unwrap();
        assert_eq!(page.items.iter().map(|one| one.path.as_str()).collect::<Vec<_>>(), paths, "{query}");
    }
    let released: PrefixReleased =
        client.call(Call::delete(format!("/v1/prefixes/{}", node.id)).within(LONG)).await.unwrap();
    assert_eq!(released.cidrs.len(), 3);
    assert!(!released.ending);
    let gone: Result<Prefix, Problem> = get(&client, &format!("/v1/prefixes/{}", node.id)).await;
    assert_eq!(gone.unwrap_err().code, Code::NotFound);
    let events: EventPage = get(&client, "/v1/events?kind=prefix&pool=trench").await.unwrap();
    let told: Vec<String> = events
        .items
        .iter()
        .map(|event| {
            format!("{} {} {}", event.event_type, event.object, event.owner.as_deref().unwrap_or_default())
        })
        .collect();
    assert_eq!(
        told,
        [
            "prefix.delegated 172.16.0.0/20 default/conduit-a",
            "prefix.delegated 172.16.0.0/24 default/node-1",
            "prefix.delegated 172.16.0.1/32 default/c1",
            "prefix.delegated 172.16.0.2/32 default/c2",
            "prefix.released 172.16.0.1/32 default/c1",
            "prefix.released 172.16.0.2/32 default/c2",
            "prefix.released 172.16.0.0/24 default/node-1",
        ]
    );
    assert_eq!(events.items[4].reason.as_deref(), Some(&*format!("released with {}", node.id)));
}

/// The leader removes expired prefixes in an idle cluster.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prefix_without_refreshes_ends_with_all_below_it() {
    let cluster = Cluster::up(1).await;
    pool(&cluster).await;
    let kept = delegate(&cluster, 0, json!({"pool": "trench", "owner": "kept", "length": 24})).await.unwrap();
    let body = json!({"pool": "trench", "owner": "node", "length": 24, "ttl_ms": 1500});
    let node = delegate(&cluster, 0, body).await.unwrap().prefix;
    delegate(&cluster, 0, json!({"parent": node.id, "owner": "c", "length": 32})).await.unwrap();
    assert!(node.ends_in_ms.is_some_and(|left| left <= 1500));
    let client = cluster.ask();
    let left = until("prefixes without refreshes are gone", async || {
        let page: Page<Prefix> = get(&client, "/v1/prefixes").await.map_err(|problem| problem.detail)?;
        if page.items.len() == 1 { Ok(page) } else { Err(format!("{page:?}")) }
    });
    assert_eq!(left.await.items[0], kept.prefix);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_contradictory_prefix_request_is_refused_with_the_reason() {
    let cluster = Cluster::up(1).await;
    pool(&cluster).await;
    let long: Vec<Value> = (0..16).map(|i| json!({"owner": format!("o{i}"), "length": 10 + i})).collect();
    for (body, code, says) in [
        (json!({"owner": "a", "length": 24}), Code::ConflictingFields, "either `pool` or `parent`"),
        (
            json!({"owner": "a", "length": 24, "pool": "trench", "parent": 1}),
            Code::ConflictingFields,
            "either `pool` or `parent`",
        ),
        (json!({"pool": "trench", "owner": "a/b", "length": 24}), Code::InvalidField, "owner"),
        (json!({"pool": "trench", "owner": "a", "length": 0}), Code::InvalidField, "1 to 128"),
        (json!({"pool": "trench", "owner": "a", "length": 33}), Code::ConflictingFields, "32 bits"),
        (json!({"pool": "trench", "owner": "a", "length": 300}), Code::InvalidField, "length"),
        (json!({"pool": "trench", "owner": "a", "length": 15}), Code::PoolExhausted, "/15"),
        (json!({"pool": "trench", "owner": "a"}), Code::NotFound, "a has no prefix there"),
        (json!({"pool": "nowhere", "owner": "a", "length": 24}), Code::NotFound, "nowhere"),
        (json!({"parent": 7, "owner": "a", "length": 24}), Code::NotFound, "prefix 7"),
        (json!({"pool": "trench", "owner": "a", "length": 24, "ttl_ms": 5}), Code::LimitExceeded, "ttl_ms"),
        (json!({"pool": "trench", "owner": "a", "lenght": 24}), Code::UnknownField, "lenght"),
        (
            json!({"pool": "trench", "owner": "a", "length": 32, "through": long}),
            Code::LimitExceeded,
            "levels",
        ),
        (
            json!({"pool": "trench", "owner": "a", "length": 24, "through": [{"owner": "b", "length": 24}]}),
            Code::ConflictingFields,
            "must be longer",
        ),
    ] {
        let problem = delegate(&cluster, 0, body.clone()).await.unwrap_err();
        assert_eq!(problem.code, code, "{body}: {problem:?}");
        let printed = format!("{} {:?}", problem.detail, problem);
        assert!(printed.contains(says), "{body}: {problem:?}");
    }
    let page: Page<Prefix> = get(&cluster.ask(), "/v1/prefixes").await.unwrap();
    assert!(page.items.is_empty(), "nothing is half-done");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_history_of_an_address_knows_the_time_of_the_delegation() {
    let cluster = Cluster::up(1).await;
    pool(&cluster).await;
    let given = delegate(&cluster, 0, connection("node-1", "c1")).await.unwrap();
    let (address, delegated_at) = (given.prefix.cidr.unwrap().addr(), given.prefix.created_at);
    for (at, state) in [
        (Timestamp(delegated_at.0 - 1), "free"),
        (delegated_at, "allocated"),
        (Timestamp(delegated_at.0 + 60_000), "allocated"),
    ] {
        let path = format!("/v1/addresses/{address}/history?at={at}");
        let history: AddressHistory = get(&cluster.ask(), &path).await.unwrap();
        assert_eq!(history.state.as_deref(), Some(state), "at {at}");
        assert!(history.last_holder.is_none() && history.events.is_empty(), "{history:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn by_hand() {
    let cluster = Cluster::up(1).await;
    pool(&cluster).await;
    let servers = cluster.urls();
    let run = async |line: &str| ipamctl(&servers, line).await.ends(0);
    let printed = run("prefix allocate conduit-a --pool trench --length 20").await;
    assert!(printed.stdout.starts_with("172.16.0.0/20   for conduit-a   prefix "), "{printed:?}");
    let printed =
        run("prefix allocate conduit-a/node-1 --pool trench --length 24 --keep-edges --ttl 40m").await;
    assert!(printed.stdout.starts_with("172.16.0.0/24   for conduit-a/node-1   prefix "), "{printed:?}");
    assert!(printed.stderr.contains("it ends in 40m"), "{printed:?}");
    let printed = run("prefix allocate conduit-a/node-1 --pool trench -o name").await;
    assert_eq!(printed.stdout.trim(), "172.16.0.0/24");
    let printed = run("prefix list --pool trench").await;
    assert!(printed.stdout.contains("conduit-a/node-1"), "{printed:?}");
    let printed = run("who-has 172.16.0.9").await;
    assert!(printed.stdout.contains("172.16.0.0/24 of conduit-a/node-1"), "{printed:?}");
    let id = run("prefix list --pool trench -o name --limit 1").await.stdout.trim().to_owned();
    let printed = run(&format!("prefix show {id}")).await;
    assert!(printed.stdout.contains("1 prefix"), "{printed:?}");
    let printed = run(&format!("prefix release {id} --yes")).await;
    assert!(
        printed.stderr.contains("172.16.0.0/20") && printed.stderr.contains("172.16.0.0/24"),
        "{printed:?}"
    );
    ipamctl(&servers, &format!("prefix show {id}")).await.ends(3);
}

fn rack(owner: &str) -> Value {
    json!({"pool": "racks", "owner": owner, "length": 29, "wait": true})
}

/// Pool with room for two /29, which are delegated. The ids of the prefixes.
async fn full(cluster: &Cluster) -> [u64; 2] {
    put(&cluster.ask(), "subnets", json!({"name": "racks", "cidr": "172.17.0.0/28"})).await;
    let pool = json!({"name": "racks", "subnet": "racks", "allow_edges": true, "cooling_ms": 0});
    put(&cluster.ask(), "pools", pool).await;
    let mut ids = Vec::new();
    for owner in ["a", "b"] {
        ids.push(delegate(cluster, 0, rack(owner)).await.unwrap().prefix.id);
    }
    [ids[0], ids[1]]
}

async fn release(cluster: &Cluster, id: u64) -> PrefixReleased {
    cluster.ask().call(Call::delete(format!("/v1/prefixes/{id}")).repeatable()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_requests_are_served_in_order_by_releases() {
    let mut cluster = Cluster::up(3).await;
    let held = full(&cluster).await;
    let mut waiting = Vec::new();
    for (member, owner) in ["c", "d", "e"].into_iter().enumerate() {
        let Delegated { prefix, repeated, .. } = delegate(&cluster, member, rack(owner)).await.unwrap();
        let why = prefix.waiting.unwrap();
        assert_eq!((prefix.cidr, prefix.length, repeated), (None, Some(29), false));
        assert_eq!((why.reason.as_str(), why.status.as_str()), ("PoolExhausted", "False"));
        waiting.push(prefix.id);
    }
    let again = delegate(&cluster, 1, rack("d")).await.unwrap();
    assert_eq!((again.prefix.id, again.repeated), (waiting[1], true));
    let other = json!({"pool": "racks", "owner": "d", "length": 30, "wait": true});
    assert_eq!(delegate(&cluster, 1, other).await.unwrap_err().code, Code::AlreadyExists);
    // The queue survives the processes.
    cluster.kill_all();
    cluster.start_all();
    let shown: Prefix = get(&cluster.ask(), &format!("/v1/prefixes/{}", waiting[0])).await.unwrap();
    assert_eq!((shown.path.as_str(), shown.waiting.unwrap().reason.as_str()), ("c", "PoolExhausted"));
    // Withdrawn by its id.
    assert!(release(&cluster, waiting[1]).await.cidrs.is_empty());
    for id in held {
        release(&cluster, id).await;
    }
    let page: Page<Prefix> = get(&cluster.ask(), "/v1/prefixes?pool=racks").await.unwrap();
    let given: Vec<_> = page.items.iter().map(|one| (one.path.as_str(), cidr(one))).collect();
    assert_eq!(given, [("c", "172.17.0.0/29".to_owned()), ("e", "172.17.0.8/29".to_owned())]);
    assert_eq!(cidr(&delegate(&cluster, 2, rack("c")).await.unwrap().prefix), "172.17.0.0/29");
    let page: EventPage = get(&cluster.ask(), "/v1/events?kind=prefix&limit=1000").await.unwrap();
    let told: Vec<_> = page.items.iter().map(|one| (one.event_type.as_str(), one.object.as_str())).collect();
    for event in [("prefix.waiting", "d"), ("prefix.withdrawn", "d"), ("prefix.delegated", "172.17.0.8/29")] {
        assert!(told.contains(&event), "{event:?} in {told:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_waits_for_a_prefix() {
    let cluster = Cluster::up(1).await;
    let [held, _] = full(&cluster).await;
    let servers = cluster.urls();
    let run = async |line: &str| ipamctl(&servers, line).await.ends(0);
    let tried = run("prefix allocate c --pool racks --length 29 --wait --dry-run").await;
    assert!(tried.stderr.contains("c would wait: no aligned block of /29 is free"), "{tried:?}");
    let waits = run("prefix allocate c --pool racks --length 29 --wait").await;
    assert!(waits.stdout.starts_with("/29   for c   prefix "), "{waits:?}");
    assert!(waits.stderr.contains("c waits: no aligned block of /29 is free in pool racks"), "{waits:?}");
    let listed = run("prefix list").await.stdout;
    assert!(listed.contains("waits (PoolExhausted)"), "{listed}");
    run("pool set racks --disable").await;
    let id = |printed: &str| printed.trim().rsplit(' ').next().unwrap().to_owned();
    let shown = run(&format!("prefix show {}", id(&waits.stdout))).await.stdout;
    assert!(shown.contains("waits") && shown.contains("(PoolNotReady)"), "{shown}");
    run("pool set racks --enable").await;
    let other = run("prefix allocate d --pool racks --length 29 --wait").await;
    let withdrawn = run(&format!("prefix release {}", id(&other.stdout))).await;
    assert!(withdrawn.stderr.contains("the waiting request of d withdrawn"), "{withdrawn:?}");
    run(&format!("prefix release {held}")).await;
    let given = run("prefix allocate c --pool racks --length 29 --wait").await;
    assert!(given.stdout.starts_with("172.17.0.0/29   for c   prefix "), "{given:?}");
}
