//! A member that was away catches up by the log or, after a long time, by a snapshot. Its history is the same
//! as that of all others, the missed part included.

use std::net::IpAddr;

use ipam_api::client::{Call, Client};
use ipam_api::event::{AddressHistory, Event, EventPage};
use serde_json::{Value, json};

use crate::support::ask::{allocate_request, get, make_pools};
use crate::support::raw::ask;
use crate::support::{Cluster, LONG, until};

/// Allocations of one step: few entries, and many bytes.
const STEPS: usize = 800;
/// Length of names that makes events large, so that few of them fill a segment of the journal.
const NAME_BYTES: usize = 200;
/// Rounds after which segments are sealed: the snapshot doesn't contain those, they must be fetched.
const ROUNDS_MIN: usize = 14;

/// Number of absences after which the member must have got a snapshot.
const AWAY_MAX: usize = 4;

/// Members that make a snapshot after each MiB and keep little of the log.
async fn restless() -> Cluster {
    let timing = "heartbeat_ms = 100\nelection_min_ms = 600\nelection_max_ms = 1000";
    let snapshots = "snapshot_every_mib = 1\nkeep_mib_behind_snapshot = 0\nsnapshot_mib_per_second = 64";
    let cluster = Cluster::of_with(3, &format!("{timing}\n{snapshots}")).all_up().await;
    make_pools(&cluster.ask()).await;
    cluster
}

/// Allocates many addresses in one step, and releases one of the earlier ones.
async fn give(client: &Client, round: usize) {
    let name = |number: usize| format!("{}-{round}-{number}", "x".repeat(NAME_BYTES));
    let mut steps: Vec<Value> = (0..STEPS)
        .map(|number| {
            let body = allocate_request(&name(number), &["web"]);
            json!({"method": "POST", "path": "/v1/allocations", "body": body})
        })
        .collect();
    let last = format!("/v1/endpoints/host/default/default/{}", name(0));
    steps.push(json!({"method": "DELETE", "path": last}));
    let call = Call::post("/v1/transactions").json(&json!({"steps": steps})).unwrap();
    let call = call.header("idempotency-key", &format!("give-{round}")).unwrap().repeatable().slow();
    client.send(call.within(LONG)).await.unwrap();
}

/// Value of a member's counter.
async fn counted(cluster: &Cluster, at: usize, name: &str) -> u64 {
    let answer = ask(cluster.members[at].client, "GET", "/metrics", &[], &Value::Null).await;
    let mut lines = answer.body.lines();
    let value = lines.find_map(|line| line.strip_prefix(&format!("ipamd_raft_snapshots_{name}_total ")));
    value.unwrap().parse().unwrap()
}

/// All events that a member knows of, page by page.
async fn events(client: &Client) -> Result<Vec<Event>, String> {
    let mut events = Vec::new();
    let mut after = String::new();
    loop {
        let page = get::<EventPage>(client, &format!("/v1/events?limit=1000{after}")).await;
        let page = page.map_err(|problem| problem.to_string())?;
        events.extend(page.items);
        match page.next {
            Some(next) => after = format!("&after={next}"),
            None => return Ok(events),
        }
    }
}

/// Every member tells the same, of everything and of single addresses.
async fn all_tell_the_same(cluster: &Cluster, at_least: usize) {
    cluster.settled().await;
    let expected = events(&cluster.at(0)).await.unwrap();
    assert!(expected.len() >= at_least, "{}", expected.len());
    assert!(expected.is_sorted_by_key(|event| (event.revision, event.number)));
    for at in 1..3 {
        let told = until("a member has all of history", async || events(&cluster.at(at)).await).await;
        let differs = expected.iter().zip(&told).find(|(one, other)| one != other);
        assert!(differs.is_none() && expected.len() == told.len(), "{} {differs:?}", told.len());
    }
    for address in ["10.7.0.2", "10.7.0.3", "10.7.4.9"] {
        let address: IpAddr = address.parse().unwrap();
        let path = format!("/v1/addresses/{address}/history");
        let expected: AddressHistory = get(&cluster.at(0), &path).await.unwrap();
        assert!(!expected.events.is_empty());
        for at in 1..3 {
            assert_eq!(get::<AddressHistory>(&cluster.at(at), &path).await.unwrap(), expected);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_absent_for_long_gets_a_snapshot_and_all_of_history() {
    let mut cluster = restless().await;
    let client = cluster.ask();
    give(&client, 0).await;
    let late = cluster.follower().await;
    let others: Vec<usize> = (0..3).filter(|at| *at != late).collect();
    let mut round = 1;
    // A leader doesn't abort an append to a member that stops, and then the log may suffice: another round.
    for _ in 0..AWAY_MAX {
        assert!(cluster.stop(late).await.success());
        let before =
            [counted(&cluster, others[0], "built").await, counted(&cluster, others[1], "built").await];
        // The third one follows a purge of the log after the second, whichever member leads.
        let built = async |which: usize| counted(&cluster, others[which], "built").await >= before[which] + 3;
        while round < ROUNDS_MIN || !built(0).await || !built(1).await {
            give(&client, round).await;
            round += 1;
            assert!(round < 80, "no snapshots, whatever was written");
        }
        cluster.start(late);
        cluster.ready().await;
        all_tell_the_same(&cluster, round * STEPS).await;
        if counted(&cluster, late, "installed").await > 0 {
            break;
        }
    }
    // More than one if another was in progress at that time, and the log was purged after that, too.
    assert!(counted(&cluster, late, "installed").await > 0, "it never got a snapshot");
    for at in others {
        assert_eq!(counted(&cluster, at, "installed").await, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_absent_for_a_moment_gets_the_log() {
    let mut cluster = restless().await;
    let client = cluster.ask();
    for round in 0..3 {
        give(&client, round).await;
    }
    let late = cluster.follower().await;
    cluster.members[late].kill();
    for number in 0..20 {
        crate::support::ask::allocate(&client, &allocate_request(&format!("h{number}"), &["web"]))
            .await
            .unwrap();
    }
    cluster.start(late);
    cluster.ready().await;
    all_tell_the_same(&cluster, 3 * STEPS + 20).await;
    for at in 0..3 {
        assert_eq!(counted(&cluster, at, "installed").await, 0);
    }
}
