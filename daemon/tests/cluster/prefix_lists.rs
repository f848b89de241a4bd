//! Lists of prefixes on real members: exactly the listed owners have prefixes. Over HTTP and with `ipamctl`.

use ipam_api::client::Call;
use ipam_api::event::EventPage;
use ipam_api::request::PrefixesSet;
use ipam_api::resource::{Page, Prefix};
use ipam_api::{Code, Problem};
use serde_json::{Value, json};

use crate::cluster::command_line::ipamctl;
use crate::support::ask::{get, put};
use crate::support::{Cluster, LONG};

async fn trench(cluster: &Cluster) {
    put(&cluster.ask(), "subnets", json!({"name": "trench", "cidr": "172.16.0.0/18"})).await;
    let pool = json!({"name": "trench", "subnet": "trench", "allow_edges": true, "cooling_ms": 0});
    put(&cluster.ask(), "pools", pool).await;
}

fn list(owners: &[&str]) -> Value {
    let level = |owner: &&str| json!({"owner": owner, "length": 20});
    json!({"pool": "trench", "prefixes": owners.iter().map(level).collect::<Vec<_>>()})
}

fn call(body: &Value) -> Call {
    Call::put("/v1/prefixes").json(body).unwrap().repeatable().within(LONG)
}

async fn set(cluster: &Cluster, member: usize, call: Call) -> Result<PrefixesSet, Problem> {
    cluster.members[member].ask().call(call).await
}

/// Owners with their blocks, or `waits`; and the owners that were left out.
fn said(done: &PrefixesSet) -> (Vec<String>, Vec<&str>) {
    let one = |prefix: &Prefix| match prefix.cidr {
        Some(cidr) => format!("{} {cidr}", prefix.owner),
        None => format!("{} waits", prefix.owner),
    };
    (done.prefixes.iter().map(one).collect(), done.released.iter().map(|one| one.owner.as_str()).collect())
}

async fn paths(cluster: &Cluster, query: &str) -> Vec<String> {
    let page: Page<Prefix> = get(&cluster.ask(), &format!("/v1/prefixes{query}")).await.unwrap();
    page.items.into_iter().map(|one| one.path).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exactly_the_listed_prefixes_are_there_whichever_member_is_asked() {
    let cluster = Cluster::up(3).await;
    trench(&cluster).await;
    let done = set(&cluster, 0, call(&list(&["a", "c"]))).await.unwrap();
    assert_eq!(said(&done), (vec!["a 172.16.0.0/20".to_owned(), "c 172.16.16.0/20".to_owned()], vec![]));
    let through = json!({"pool": "trench", "through": [{"owner": "c"}], "owner": "node", "length": 24});
    let below = Call::post("/v1/prefixes").json(&through).unwrap().repeatable().within(LONG);
    let _: Value = cluster.ask().call(below).await.unwrap();
    let done = set(&cluster, 1, call(&list(&["b", "a"]))).await.unwrap();
    assert_eq!(said(&done).0, ["b 172.16.32.0/20", "a 172.16.0.0/20"], "in the order of the list");
    let [left_out] = done.released.as_slice() else { panic!("{done:?}") };
    assert_eq!(
        (left_out.owner.as_str(), left_out.cidr.unwrap().to_string()),
        ("c", "172.16.16.0/20".to_owned())
    );
    assert!(!done.ending);
    assert_eq!(paths(&cluster, "").await, ["a", "b"], "what was below is gone, too");
    // A repetition changes nothing; a dry run neither.
    let again = set(&cluster, 2, call(&list(&["b", "a"]))).await.unwrap();
    assert_eq!((again.revision, again.released.len(), &again.prefixes), (done.revision, 0, &done.prefixes));
    let tried = set(&cluster, 2, call(&list(&[])).query("dry_run", "true")).await.unwrap();
    assert_eq!(said(&tried), (vec![], vec!["a", "b"]));
    assert_eq!(paths(&cluster, "?owner=a").await, ["a"]);
    let page: EventPage = get(&cluster.ask(), "/v1/events?kind=prefix&pool=trench").await.unwrap();
    let told: Vec<_> =
        page.items.iter().map(|event| format!("{} {}", event.event_type, event.object)).collect();
    assert_eq!(
        told[3..],
        [
            "prefix.delegated 172.16.32.0/20",
            "prefix.released 172.16.16.0/24",
            "prefix.released 172.16.16.0/20"
        ]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_gets_the_same_answer_and_a_transaction_takes_a_list() {
    let cluster = Cluster::up(1).await;
    trench(&cluster).await;
    let keyed = |owners: &[&str]| call(&list(owners)).header("idempotency-key", "list-1").unwrap();
    let first = set(&cluster, 0, keyed(&["a"])).await.unwrap();
    let next = set(&cluster, 0, call(&list(&["b"]))).await.unwrap();
    assert_eq!(said(&next).1, ["a"]);
    assert_eq!(set(&cluster, 0, keyed(&["a"])).await.unwrap(), first, "it has nothing done twice");
    assert_eq!(set(&cluster, 0, keyed(&["b"])).await.unwrap_err().code, Code::IdempotencyKeyReused);
    assert_eq!(paths(&cluster, "").await, ["b"]);
    // Four blocks: the fifth owner waits, and is served by the next list.
    let full = set(&cluster, 0, call(&list(&["b", "c", "d", "e", "f"]))).await.unwrap();
    assert_eq!(said(&full).0[4], "f waits");
    assert_eq!(full.prefixes[4].waiting.as_ref().unwrap().reason, "PoolExhausted");
    assert_eq!(paths(&cluster, "?path=f").await, ["f"]);
    let steps = json!({"steps": [
        {"method": "PUT", "path": "/v1/prefixes", "body": list(&["f", "c", "g"])},
        {"method": "PUT", "path": "/v1/prefixes", "body": list(&["f", "g"])},
    ]});
    let transaction = Call::post("/v1/transactions").json(&steps).unwrap().repeatable().within(LONG);
    let done: Value = cluster.ask().call(transaction).await.unwrap();
    let left_out = |step: usize| -> Vec<&str> {
        let released = done["results"][step]["body"]["released"].as_array().unwrap();
        released.iter().map(|one| one["owner"].as_str().unwrap()).collect()
    };
    assert_eq!((left_out(0), left_out(1)), (vec!["b", "d", "e"], vec!["c"]), "{done}");
    assert_eq!(paths(&cluster, "").await, ["f", "g"]);
    let refused = json!({"steps": [
        {"method": "PUT", "path": "/v1/prefixes", "body": list(&[])},
        {"method": "PUT", "path": "/v1/prefixes", "body": {"pool": "nowhere", "prefixes": []}},
    ]});
    let transaction = Call::post("/v1/transactions").json(&refused).unwrap().within(LONG);
    let problem = cluster.ask().call::<Value>(transaction).await.unwrap_err();
    assert_eq!(problem.code, Code::NotFound);
    assert_eq!(paths(&cluster, "").await, ["f", "g"], "all or nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_contradictory_list_is_refused_with_the_reason() {
    let cluster = Cluster::up(1).await;
    trench(&cluster).await;
    set(&cluster, 0, call(&list(&["a"]))).await.unwrap();
    let level = |owner: &str, length: u64| json!({"owner": owner, "length": length});
    let many: Vec<Value> = (0..1025).map(|i| level(&format!("o{i}"), 32)).collect();
    for (body, code, says) in [
        (json!({"prefixes": []}), Code::ConflictingFields, "either `pool` or `parent`"),
        (json!({"pool": "trench"}), Code::InvalidField, "prefixes"),
        (json!({"pool": "trench", "prefixes": [], "lenght": 1}), Code::UnknownField, "lenght"),
        (
            json!({"pool": "trench", "prefixes": [level("n", 24), level("a", 21)]}),
            Code::AlreadyExists,
            "length 20",
        ),
        (
            json!({"pool": "trench", "prefixes": [level("n", 24), level("n", 24)]}),
            Code::ConflictingFields,
            "n is",
        ),
        (json!({"pool": "trench", "prefixes": [{"owner": "n"}]}), Code::NotFound, "n has no prefix there"),
        (json!({"pool": "trench", "prefixes": many}), Code::LimitExceeded, "1025 prefixes of a list"),
        (json!({"parent": 7, "prefixes": []}), Code::NotFound, "prefix 7"),
    ] {
        let problem = set(&cluster, 0, call(&body)).await.unwrap_err();
        assert_eq!(problem.code, code, "{body}: {problem:?}");
        assert!(format!("{problem:?}").contains(says), "{body}: {problem:?}");
    }
    assert_eq!(paths(&cluster, "").await, ["a"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn by_hand() {
    let cluster = Cluster::up(1).await;
    trench(&cluster).await;
    let servers = cluster.urls();
    let run = async |line: &str, code: i32| ipamctl(&servers, line).await.ends(code);
    let made = run("prefix set conduit-a conduit-b --pool trench --length 20", 0).await;
    assert!(made.stdout.contains("172.16.16.0/20") && made.stdout.contains("conduit-b"), "{made:?}");
    assert!(made.stderr.contains("nothing else was there"), "{made:?}");
    let tried = run("prefix set conduit-b conduit-c --pool trench --length 20 --dry-run", 0).await;
    assert!(tried.stderr.contains("would be released: 172.16.0.0/20 of conduit-a"), "{tried:?}");
    let refused = run("prefix set conduit-b conduit-c --pool trench --length 20", 2).await;
    assert!(
        refused.stderr.contains("172.16.0.0/20 of conduit-a") && refused.stderr.contains("--yes"),
        "{refused:?}"
    );
    let shown = run("prefix set conduit-b conduit-c --pool trench --length 20 --yes -o json", 0).await;
    let shown: PrefixesSet = serde_json::from_str(&shown.stdout).unwrap();
    let blocks = vec!["conduit-b 172.16.16.0/20".to_owned(), "conduit-c 172.16.32.0/20".to_owned()];
    assert_eq!(said(&shown), (blocks, vec!["conduit-a"]));
    run("prefix set conduit-b --pool trench --length 21 --yes", 4).await;
    // No list is no empty list.
    run("prefix set --pool trench", 2).await;
    run("prefix set conduit-b --none --pool trench", 2).await;
    assert_eq!(paths(&cluster, "").await, ["conduit-b", "conduit-c"]);
    let none = run("prefix set --none --pool trench --yes", 0).await;
    assert!(none.stderr.contains("released: 172.16.16.0/20 of conduit-b"), "{none:?}");
    assert_eq!(paths(&cluster, "").await, [""; 0]);
}
