//! Members taken one after the other from this program to one of the next feature level, under load.

use std::sync::{Arc, Mutex};

use ipam_api::event::EventPage;
use serde_json::{Value, json};

use super::{many, restless};
use crate::kill::members::holds_on_every_member;
use crate::kill::writers::{Ledger, Writers, held};
use crate::support::ask::{allocate_request, get, list, make_pools, put};
use crate::support::member::Member;
use crate::support::raw::{Raw, ask};
use crate::support::{Cluster, programs, until};

/// The other rule of the next level adds this to the name of the principal that makes a resource.
const MARK: &str = "@2";

/// Prefix of every sentence of a member with other wording.
const REWORDED: &str = "in other words: ";

/// Makes a member, which is down, one that knows the next level.
fn upgrade(member: &mut Member) {
    member.program = programs::testing_ipamd();
    member.flags = vec!["--test-option", "next-level"];
}

/// The level of the state, as each member that is up has it.
async fn levels(cluster: &Cluster) -> Vec<u32> {
    let mut levels = Vec::new();
    for at in 0..cluster.members.len() {
        levels.push(cluster.shown(at).await.level);
    }
    levels
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_upgrade_changes_the_rules_on_all_members_at_one_entry() {
    let mut cluster = restless().all_up().await;
    let client = cluster.ask();
    make_pools(&client).await;
    let ledger = Arc::new(Mutex::new(Ledger::default()));
    let mut writers = Writers::start(8, 0, &cluster.urls(), &ledger);
    let mut made = 0;
    let mut make = async || {
        made += 1;
        put(&client, "networks", json!({"name": format!("made-{made}")})).await;
    };
    for at in 0..3 {
        make().await;
        writers.get_on(many(300, 50)).await;
        assert_eq!(levels(&cluster).await, [1; 3], "members with the old program know no other level");
        assert!(cluster.stop(at).await.success());
        upgrade(&mut cluster.members[at]);
        cluster.start(at);
        cluster.ready().await;
    }
    until("the level is raised everywhere", async || {
        make().await;
        let levels = levels(&cluster).await;
        if levels == [2; 3] { Ok(()) } else { Err(format!("{levels:?}")) }
    })
    .await;
    make().await;
    writers.get_on(many(300, 50)).await;
    writers.stop().await;
    let shown = holds_on_every_member(&cluster, &ledger).await;
    assert!(held(&ledger).acknowledged() > many(1200, 200));
    for member in &shown.members {
        assert_eq!((member.level, member.quarantined.as_deref()), (Some(2), None), "{}", member.name);
    }
    // One entry, the same one everywhere, and every rule before and after it is the right one.
    let page: EventPage = get(&client, "/v1/events?kind=cluster").await.unwrap();
    let raised: Vec<_> = page.items.iter().filter(|event| event.event_type == "cluster.level").collect();
    assert_eq!(raised.len(), 1, "{raised:?}");
    let networks: Vec<Value> = list(&client, "/v1/networks").await;
    let (mut before, mut after) = (0, 0);
    for meta in networks.iter().map(|network| &network["meta"]) {
        let marked = meta["created_by"].as_str().unwrap().ends_with(MARK);
        assert_eq!(marked, meta["id"].as_u64().unwrap() > raised[0].revision, "{meta}");
        if marked { after += 1 } else { before += 1 }
    }
    assert!(before >= 3 && after >= 1, "{before} before, {after} after");

    // A member that returns with the old program doesn't guess the rules.
    assert!(cluster.stop(2).await.success());
    cluster.members[2].program = programs::ipamd();
    cluster.members[2].flags.clear();
    cluster.start(2);
    assert!(!cluster.members[2].exit().await.success());
    let printed = cluster.members[2].logged();
    assert!(printed.contains("the cluster's feature level is 2, and this ipamd knows up to 1"), "{printed}");
    // Nor does one that gets the state from the others.
    upgrade(&mut cluster.members[2]);
    cluster.start(2);
    cluster.ready().await;
    cluster.settled().await;
}

/// Sends the same request and key to each member. The first refuses it by the rules, the others return the
/// kept answer.
async fn refused_everywhere(
    cluster: &Cluster,
    key: &str,
    method: &str,
    path: &str,
    body: &Value,
) -> Vec<Raw> {
    let mut answers = Vec::new();
    for member in &cluster.members {
        answers.push(ask(member.client, method, path, &[("idempotency-key", key)], body).await);
        same_state(cluster).await;
    }
    answers
}

/// Waits until all members have applied the same entry; at that entry their digests must be equal. A member
/// that differed and was rebuilt meanwhile is seen by its counters.
async fn same_state(cluster: &Cluster) {
    let all = until("all have applied the same", async || {
        let mut all = Vec::new();
        for at in 0..cluster.members.len() {
            let shown = cluster.shown(at).await;
            all.push((shown.applied, shown.digest));
        }
        if all.iter().all(|(applied, _)| *applied == all[0].0) { Ok(all) } else { Err(format!("{all:?}")) }
    })
    .await;
    assert!(all.iter().all(|one| *one == all[0]), "members differ: {all:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_with_other_sentences_stay_equal() {
    let mut cluster = restless();
    cluster.members[2].program = programs::testing_ipamd();
    cluster.members[2].flags = vec!["--test-option", "reword-sentences"];
    let cluster = cluster.all_up().await;
    let client = cluster.ask();
    put(&client, "subnets", json!({"name": "lab", "cidr": "10.30.0.0/24"})).await;
    put(&client, "pools", json!({"name": "lab", "subnet": "lab", "ranges": ["10.30.0.7"]})).await;
    let holder = serde_json::to_value(allocate_request("holder", &["lab"])).unwrap();
    assert_eq!(ask(cluster.members[0].client, "POST", "/v1/allocations", &[], &holder).await.status, 201);

    let more = |name: &str, pool: &str| serde_json::to_value(allocate_request(name, &[pool])).unwrap();
    let steps = |steps: Value| json!({"steps": steps});
    let outside = json!({"name": "out", "subnet": "lab", "ranges": ["10.99.0.1"]});
    let writes = [
        ("exhausted", "POST", "/v1/allocations", more("second", "lab"), "pool-exhausted"),
        ("missing", "POST", "/v1/allocations", more("third", "nowhere"), "not-found"),
        ("outside", "PUT", "/v1/pools/out", outside.clone(), "outside-subnet"),
        ("in-use", "DELETE", "/v1/pools/lab", Value::Null, "in-use"),
        (
            "step",
            "POST",
            "/v1/transactions",
            steps(json!([
                {"method": "POST", "path": "/v1/networks", "body": {"name": "dropped"}},
                {"method": "PUT", "path": "/v1/pools/out", "body": outside},
            ])),
            "outside-subnet",
        ),
        (
            "step-exhausted",
            "POST",
            "/v1/transactions",
            steps(json!([{"method": "POST", "path": "/v1/allocations", "body": more("fourth", "lab")}])),
            "pool-exhausted",
        ),
    ];
    for (key, method, path, body, code) in &writes {
        let answers = refused_everywhere(&cluster, key, method, path, body).await;
        let problems: Vec<_> = answers.iter().map(Raw::problem).collect();
        for (answer, problem) in answers.iter().zip(&problems) {
            assert_eq!(problem.code.to_string(), *code, "{answer:?}");
        }
        assert_eq!(answers[1].headers["idempotency-replayed"], "true", "{:?}", answers[1]);
        assert_eq!(answers[2].headers["idempotency-replayed"], "true", "{:?}", answers[2]);
        // Each member words it itself, though all of them store the same.
        assert_eq!(problems[0].detail, problems[1].detail);
        assert!(!problems[0].detail.contains(REWORDED), "{:?}", problems[0]);
        assert!(problems[2].detail.contains(REWORDED), "{:?}", problems[2]);
    }

    // Claims that wait, through every member, and what they are told while they do.
    for (at, member) in cluster.members.iter().enumerate() {
        let claim = json!({
            "endpoint": {"kind": "claim", "name": format!("c{at}")}, "wait": true,
            "interfaces": [{"name": "eth0", "ipv4_pools": ["lab"]}],
        });
        let answer = ask(member.client, "POST", "/v1/allocations", &[], &claim).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        assert_eq!(answer.body.contains(REWORDED), at == 2, "{answer:?}");
        same_state(&cluster).await;
        let path = format!("/v1/endpoints/claim/default/default/c{at}");
        for (by, member) in cluster.members.iter().enumerate() {
            let shown = ask(member.client, "GET", &path, &[], &Value::Null).await;
            assert_eq!(shown.body.contains(REWORDED), by == 2, "{shown:?}");
        }
    }
    // The reason changes: the claims are looked at again, on all members.
    for disabled in [true, false] {
        let patch = json!({"disabled": disabled});
        let answer = ask(cluster.members[1].client, "PATCH", "/v1/pools/lab", &[], &patch).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        same_state(&cluster).await;
    }
    let path = "/v1/endpoints/host/default/default/holder";
    assert_eq!(ask(cluster.members[2].client, "DELETE", path, &[], &Value::Null).await.status, 200);
    same_state(&cluster).await;

    for member in &cluster.members {
        let metrics = ask(member.client, "GET", "/metrics", &[], &Value::Null).await.body;
        for name in ["state_divergences", "states_rebuilt", "state_quarantined"] {
            let line = metrics.lines().find(|line| line.contains(name) && !line.starts_with('#'));
            let value = line.and_then(|line| line.rsplit(' ').next());
            assert_eq!(value, Some("0"), "{}: {line:?}", member.name);
        }
    }
}
