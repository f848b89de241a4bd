//! A broken invariant of the machine ends the process with exit code 4, and the log names it.

use serde_json::json;

use crate::support::raw::{request, send};
use crate::support::{Cluster, programs};

/// The request breaks an invariant where it is applied, so also where the log is applied again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_invariant_ends_the_member_with_code_4_and_its_name() {
    let mut cluster = Cluster::of(1);
    cluster.members[0].program = programs::testing_ipamd();
    let mut cluster = cluster.all_up().await;
    let headers = [("request-id", "break-an-invariant")];
    let body = json!({"name": "web"}).to_string();
    let answer =
        send(cluster.members[0].client, &request("POST", "/v1/networks", &headers, body.as_bytes())).await;
    assert!(answer.is_none_or(|answer| answer.status != 200 && answer.status != 201), "it was acknowledged");
    for _ in 0..2 {
        assert_eq!(cluster.members[0].exit().await.code(), Some(4));
        let log = cluster.members[0].logged();
        assert!(
            log.contains("INVARIANT BROKEN") && log.contains("a command of a test breaks nothing"),
            "{log}"
        );
        cluster.start(0);
    }
    assert_eq!(cluster.members[0].exit().await.code(), Some(4));
}
