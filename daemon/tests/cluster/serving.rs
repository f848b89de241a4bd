//! Any member serves; reads see what was acknowledged; and what is left without a majority.

use std::time::Duration;

use ipam_api::Code;
use ipam_api::client::Call;
use ipam_api::resource::{Pool, PoolStatus, Resource};
use serde_json::{Value, json};

use crate::support::Cluster;
use crate::support::ask::{addresses, allocate, allocate_request, get, known, make_pools, put, refused};
use crate::support::raw::{ask, finds_no_leader};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_member_takes_writes_and_gives_reads_that_see_them() {
    let cluster = Cluster::up(3).await;
    make_pools(&cluster.ask()).await;
    for round in 0..20 {
        for writer in 0..3 {
            let name = format!("h-{round}-{writer}");
            let allocated =
                allocate(&cluster.at(writer), &allocate_request(&name, &["web", "web6"])).await.unwrap();
            assert_eq!(addresses(&allocated).len(), 2);
            for reader in 0..3 {
                let client = cluster.at(reader);
                let seen = known(&client, addresses(&allocated)[0]).await;
                assert_eq!(seen.state, "allocated", "written at {writer}, read at {reader}");
                assert!(seen.revision >= allocated.revision);
            }
        }
    }
    let shown = cluster.settled().await;
    assert_eq!(shown.addresses.allocated, 120);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_request_again_gives_the_same_answer_on_any_member() {
    let cluster = Cluster::up(3).await;
    make_pools(&cluster.ask()).await;
    let first = allocate(&cluster.at(0), &allocate_request("h1", &["web", "web6"])).await.unwrap();
    assert!(!first.repeated);
    let before = cluster.settled().await;
    for at in 0..3 {
        let again = allocate(&cluster.at(at), &allocate_request("h1", &["web", "web6"])).await.unwrap();
        assert!(again.repeated);
        assert_eq!(again.interfaces, first.interfaces);
    }
    assert_eq!(cluster.settled().await.addresses, before.addresses);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_majority_only_stale_reads_are_answered() {
    let mut cluster = Cluster::up(3).await;
    make_pools(&cluster.ask()).await;
    let given = addresses(&allocate(&cluster.ask(), &allocate_request("h1", &["web"])).await.unwrap())[0];
    cluster.settled().await;
    let leader = cluster.leader().await;
    let left = (0..3).find(|at| *at != leader).unwrap();
    for at in (0..3).filter(|at| *at != left) {
        cluster.members[at].kill();
    }
    let member = &cluster.members[left];
    member.not_ready("not ready").await;

    let begun = std::time::Instant::now();
    let path = format!("/v1/addresses/{given}");
    finds_no_leader(member.client, "GET", &path, &Value::Null).await;
    // Within its budget, with tolerance for a busy machine.
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());

    let stale = ask(member.client, "GET", &format!("{path}?consistency=stale"), &[], &Value::Null).await;
    assert_eq!(stale.status, 200, "{stale:?}");
    assert!(stale.headers["stale-ms"].parse::<u64>().unwrap() > 0);
    assert_eq!(stale.json::<Value>()["state"], "allocated");

    finds_no_leader(member.client, "POST", "/v1/allocations", &json!(allocate_request("h2", &["web"]))).await;
    // Alive all the same: a restart wouldn't help.
    assert_eq!(ask(member.client, "GET", "/livez", &[], &Value::Null).await.status, 200);
    let ready = ask(member.client, "GET", "/readyz", &[], &Value::Null).await;
    assert_eq!((ready.status, ready.problem().code), (503, Code::NoLeader));

    cluster.start_all();
    cluster.ready().await;
    assert_eq!(known(&cluster.at(left), given).await.state, "allocated");
    // A request refused with `no-leader` has had no effect.
    assert_eq!(cluster.settled().await.addresses.allocated, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_told_to_stop_hands_over_and_ends_well() {
    let mut cluster = Cluster::calm(3).await;
    make_pools(&cluster.ask()).await;
    for round in 0..3 {
        let old = cluster.leader().await;
        let term = cluster.shown(old).await.term;
        let status = cluster.stop(old).await;
        assert!(status.success(), "round {round}: {status}\n{}", cluster.members[old].tail());
        let logged = cluster.members[old].logged();
        assert!(logged.contains("leadership was transferred"), "{logged}");
        let new = cluster.leader().await;
        assert_ne!(new, old);
        // One election and no more.
        assert_eq!(cluster.shown(new).await.term, term + 1);
        let (left, name) = (cluster.follower().await, format!("h{round}"));
        allocate(&cluster.at(left), &allocate_request(&name, &["web"])).await.unwrap();
        cluster.start(old);
        cluster.ready().await;
    }
    assert_eq!(cluster.settled().await.addresses.allocated, 3);
    for at in 0..3 {
        assert!(cluster.stop(at).await.success());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_are_what_is_documented() {
    let cluster = Cluster::up(3).await;
    make_pools(&cluster.ask()).await;
    let leader = cluster.leader().await;
    let client = cluster.at(leader);
    allocate(&client, &allocate_request("h1", &["web", "web6"])).await.unwrap();
    refused(get::<Value>(&client, "/v1/pools/none").await, Code::NotFound);
    let answer = ask(cluster.members[leader].client, "GET", "/metrics", &[], &Value::Null).await;
    assert!(answer.headers["content-type"].starts_with("application/openmetrics-text"), "{answer:?}");
    assert!(answer.body.ends_with("# EOF\n"));
    let mut names = Vec::new();
    for line in answer.body.lines() {
        match line.strip_prefix("# ") {
            Some(comment) => {
                names.extend(comment.strip_prefix("TYPE ").and_then(|rest| rest.split(' ').next()));
            }
            // Every sample is a name, perhaps labels, and a number.
            None => {
                let (name, value) = line.rsplit_once(' ').unwrap();
                assert!(name.starts_with("ipamd_"), "{line}");
                value.parse::<f64>().unwrap_or_else(|error| panic!("{line}: {error}"));
            }
        }
    }
    // Known after the first round of the tasks, and only with TLS.
    let absent = [
        "ipamd_task_last_success_timestamp_seconds",
        "ipamd_task_reclaimed",
        "ipamd_certificate_expiry_timestamp_seconds",
    ];
    names.retain(|name| !absent.contains(name));
    names.sort_unstable();
    let mut documented: Vec<String> = ipamd::metrics::Metrics::new(true)
        .catalogue()
        .iter()
        .map(|described| described.name.trim_end_matches("_total").to_owned())
        .filter(|name| !absent.contains(&name.as_str()))
        .collect();
    documented.sort_unstable();
    assert_eq!(names, documented);
    for sample in [
        "ipamd_raft_is_leader 1",
        "ipamd_rows_rebuilt_total 0",
        "ipamd_journal_segments{part=\"sealed\"} 0",
        "ipamd_journal_segments{part=\"open\"} 1",
        "ipamd_journal_bytes{part=\"sealed\"} 0",
        "ipamd_allocations_total{family=\"ipv6\",outcome=\"given\"} 1",
        "ipamd_refusals_total{code=\"not-found\"} 1",
        "ipamd_pool_addresses{network=\"default\",pool=\"web\",state=\"allocated\"} 1",
        "ipamd_pool_addresses{network=\"default\",pool=\"web\",state=\"excluded\"} 3",
    ] {
        assert!(answer.body.lines().any(|line| line == sample), "{sample} is not in\n{}", answer.body);
    }
    // What took time was counted, in every bucket from some bound on.
    for counted in ["ipamd_raft_commit_seconds", "ipamd_log_fsync_seconds", "ipamd_apply_seconds"] {
        let value = |sample: &str| -> u64 {
            let mut lines = answer.body.lines();
            let found = lines.find_map(|line| line.strip_prefix(counted)?.strip_prefix(sample));
            found.unwrap_or_else(|| panic!("{counted}{sample}")).trim().parse().unwrap()
        };
        assert!(value("_count ") > 0, "{counted}");
        assert_eq!(value("_count "), value("_bucket{le=\"+Inf\"} "), "{counted}");
    }
    let value = |name: &str| -> u64 {
        let found = answer.body.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        found.unwrap_or_else(|| panic!("{name}"))
    };
    assert!(value("ipamd_journal_bytes{part=\"open\"}") > 100);
    let now_s = ipam_api::time::Timestamp::now().0 / 1000;
    assert!((now_s - 600..=now_s).contains(&value("ipamd_events_oldest_timestamp_seconds")));
    let lags = answer.body.lines().filter(|line| line.starts_with("ipamd_raft_peer_lag_entries{peer="));
    assert_eq!(lags.count(), 2, "{}", answer.body);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_say_who_leads_and_which_state_they_are_from() {
    let cluster = Cluster::up(3).await;
    make_pools(&cluster.ask()).await;
    let (leader, follower) = (cluster.leader().await, cluster.follower().await);
    let member = &cluster.members[follower];
    let answer = ask(member.client, "GET", "/v1/pools/web", &[("request-id", "mine-7")], &Value::Null).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.headers["leader"], cluster.members[leader].url());
    assert_eq!(answer.headers["request-id"], "mine-7");
    assert!(answer.headers["server-timing"].starts_with("total;dur="));
    let pool: Resource<Pool, PoolStatus> = answer.json();
    assert_eq!(answer.headers["etag"], format!("\"{}\"", pool.meta.revision));
    assert_eq!(answer.headers["revision"], pool.status.revision.to_string());
    // A busy pool can always be edited: allocations don't move its revision.
    allocate(&cluster.ask(), &allocate_request("h1", &["web"])).await.unwrap();
    let later: Resource<Pool, PoolStatus> = get(&member.ask(), "/v1/pools/web").await.unwrap();
    assert_eq!(later.meta, pool.meta);
    assert!(later.status.revision > pool.status.revision);
    assert_eq!(later.status.counts.allocated, 1);
    // A name of the caller's that could do harm in a log is replaced.
    let answer = ask(member.client, "GET", "/livez", &[("request-id", "a b\"c")], &Value::Null).await;
    assert_ne!(answer.headers["request-id"], "a b\"c");
    put(&member.ask(), "networks", json!({"name": "lab"})).await;
    let version: Value = get(&member.ask(), "/version").await.unwrap();
    assert_eq!(version["product"], "ipamd");
    let call = Call::get("/v1/networks/lab?consistency=stale");
    assert_eq!(member.ask().send(call).await.unwrap().status, 200);
}
