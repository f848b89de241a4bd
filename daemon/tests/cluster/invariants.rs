//! A broken invariant of the machine ends the process with exit code 4, and the log names it.

use serde_json::json;

use crate::support::raw::{request, send};
use crate::support::{Cluster, programs};

/// A cluster of one member that tests can break.
async fn breakable() -> Cluster {
    let mut cluster = Cluster::of(1);
    cluster.members[0].program = programs::testing_ipamd();
    cluster.all_up().await
}

/// Waits for the member to end for a broken invariant that the log names.
async fn assert_ended(cluster: &mut Cluster, invariant: &str) {
    assert_eq!(cluster.members[0].exit().await.code(), Some(4));
    let log = cluster.members[0].logged();
    assert!(log.contains("INVARIANT BROKEN") && log.contains(invariant), "{log}");
}

/// The request breaks an invariant where it is applied, so also where the log is applied again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_invariant_ends_the_member_with_code_4_and_its_name() {
    let mut cluster = breakable().await;
    let headers = [("request-id", "break-an-invariant")];
    let body = json!({"name": "web"}).to_string();
    let answer =
        send(cluster.members[0].client, &request("POST", "/v1/networks", &headers, body.as_bytes())).await;
    assert!(answer.is_none_or(|answer| answer.status != 200 && answer.status != 201), "it was acknowledged");
    for _ in 0..2 {
        assert_ended(&mut cluster, "a command of a test breaks nothing").await;
        cluster.start(0);
    }
    assert_eq!(cluster.members[0].exit().await.code(), Some(4));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_finds_an_invariant_broken_ends_the_member_with_code_4() {
    let mut cluster = breakable().await;
    let headers = [("request-id", "break-an-invariant")];
    let answer = send(cluster.members[0].client, &request("GET", "/v1/networks", &headers, b"")).await;
    assert!(answer.is_none_or(|answer| answer.status != 200), "it was answered");
    assert_ended(&mut cluster, "a command of a test breaks nothing").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_that_breaks_an_invariant_when_it_is_loaded_ends_each_start_with_code_4() {
    let mut cluster = breakable().await;
    let body = json!({"name": "break-when-loaded"}).to_string();
    let created = request("POST", "/v1/networks", &[], body.as_bytes());
    let answer = send(cluster.members[0].client, &created).await.expect("an answer");
    assert_eq!(answer.status, 201, "{answer:?}");
    cluster.stop(0).await;
    for _ in 0..2 {
        cluster.start(0);
        assert_ended(&mut cluster, "a row of a test breaks nothing").await;
    }
}
