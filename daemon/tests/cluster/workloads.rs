//! Reports of workloads at real members: addresses of those that are gone are released, by uid and by id.

use ipam_api::Code;
use ipam_api::Problem;
use ipam_api::client::{Call, Client};
use ipam_api::limits::WORKLOADS_MAX;
use ipam_api::node_report::Inventory;
use ipam_api::request::Allocated;
use ipam_api::time::Timestamp;
use ipam_api::workload::{WorkloadReason, WorkloadResult, WorkloadVerdict, WorkloadsAnswer};
use serde_json::{Value, json};

use crate::cluster::access::{add, guarded, make, node_secret, root, with};
use crate::support::ask::{addresses, allocations, known, make_pools, refused, subnet_with_pool};
use crate::support::{Cluster, LONG};

/// ADD of the container of a pod. Containers of one name belong to the same pod with the same uid.
async fn added(client: &Client, pod: &str, uid: &str, fields: Value) -> Allocated {
    let mut body = add("n1", &format!("{pod}-{uid}"));
    body["endpoint"]["name"] = json!(pod);
    body["uid"] = json!(uid);
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    client.call(Call::post("/v1/allocations").json(&body).unwrap().repeatable().within(LONG)).await.unwrap()
}

/// Observation of a pod, with these fields.
fn pod(name: &str, uid: &str, fields: Value) -> Value {
    let mut pod = json!({
        "endpoint": {"namespace": "web", "name": name}, "uid": uid, "observed_at": Timestamp::now(),
        "node": {"name": "n1", "state": "ready"},
    });
    pod.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    pod
}

fn deleted(name: &str, uid: &str) -> Value {
    pod(name, uid, json!({"gone": "deleted"}))
}

fn report_to(path: &str, workloads: &[Value]) -> Call {
    Call::post(path).json(&json!({"workloads": workloads})).unwrap().within(LONG)
}

async fn report(client: &Client, workloads: &[Value]) -> Vec<WorkloadResult> {
    let answer: WorkloadsAnswer = client.call(report_to("/v1/workloads", workloads)).await.unwrap();
    answer.results
}

async fn up() -> (Cluster, Client) {
    let cluster = guarded(1).await;
    let root = root(&cluster);
    make_pools(&root).await;
    (cluster, root)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_uid_is_released_and_a_newer_uid_of_the_same_name_keeps_its_address() {
    let (_cluster, root) = up().await;
    let old = added(&root, "web-0", "u1", json!({})).await;
    let new = added(&root, "web-0", "u2", json!({})).await;
    assert_ne!(addresses(&old), addresses(&new));

    let dry = report_to("/v1/workloads?dry_run=true", &[deleted("web-0", "u1")]);
    let dry: WorkloadsAnswer = root.call(dry).await.unwrap();
    assert_eq!(dry.results[0].addresses, addresses(&old));
    assert_eq!(allocations(&root).await.len(), 2, "a dry run releases nothing");

    let results =
        report(&root, &[deleted("web-0", "u1"), pod("web-0", "u2", json!({"phase": "running"}))]).await;
    assert_eq!(results, [dry.results[0].clone(), results[1].clone()], "as the dry run said");
    assert_eq!((results[0].verdict, results[0].reason), (WorkloadVerdict::Reclaim, WorkloadReason::Deleted));
    assert_eq!((results[1].verdict, results[1].reason), (WorkloadVerdict::Keep, WorkloadReason::Running));
    assert_eq!(known(&root, addresses(&old)[0]).await.state, "free");
    assert_eq!(known(&root, addresses(&new)[0]).await.state, "allocated");

    let again = report(&root, &[deleted("web-0", "u1"), deleted("web-1", "u1")]).await;
    for result in again {
        assert_eq!((result.verdict, result.reason), (WorkloadVerdict::Unknown, WorkloadReason::UidUnknown));
        assert!(result.addresses.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_address_and_those_of_a_sticky_endpoint_survive() {
    let (_cluster, root) = up().await;
    let held = json!({
        "endpoint": {"kind": "pod", "namespace": "web", "name": "held-0"}, "uid": "u1",
        "interfaces": [{"name": "eth0", "ipv4_pools": ["web"]}],
    });
    let held: Allocated =
        root.call(Call::post("/v1/allocations").json(&held).unwrap().within(LONG)).await.unwrap();
    let controller = json!({"controller": {"group": "apps", "kind": "StatefulSet", "name": "db"}});
    let sticky = added(&root, "db-0", "u1", controller).await;
    let results = report(&root, &[deleted("held-0", "u1"), deleted("db-0", "u1")]).await;
    assert_eq!((results[0].verdict, results[0].kept), (WorkloadVerdict::Reclaim, 1));
    assert_eq!(
        (results[1].verdict, results[1].reason, results[1].kept),
        (WorkloadVerdict::Keep, WorkloadReason::StickyWanted, 1)
    );
    assert!(results.iter().all(|result| result.addresses.is_empty()));
    for allocated in [&held, &sticky] {
        assert_eq!(known(&root, addresses(allocated)[0]).await.state, "allocated");
    }
    // The DEL of the pod was lost, and its report ended the attachment: the scale-down finds it detached.
    scale_to_none(&root).await;
    assert_eq!(known(&root, addresses(&sticky)[0]).await.state, "free");
    let unknown = report(&root, &[deleted("db-0", "u1")]).await;
    assert_eq!(unknown[0].verdict, WorkloadVerdict::Unknown);
}

async fn scale_to_none(root: &Client) {
    let none = json!({
        "namespace": "web", "replicas": 0,
        "controller": {"group": "apps", "kind": "StatefulSet", "name": "db"},
    });
    let scale = Call::post("/v1/controllers/scale").json(&none).unwrap().within(LONG);
    let _: Value = root.call(scale).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_that_its_controller_does_not_want_is_released_with_its_report() {
    let (_cluster, root) = up().await;
    let controller = json!({"controller": {"group": "apps", "kind": "StatefulSet", "name": "db"}});
    let sticky = added(&root, "db-0", "u1", controller).await;
    scale_to_none(&root).await;
    assert_eq!(known(&root, addresses(&sticky)[0]).await.state, "allocated", "it is attached");
    let results = report(&root, &[deleted("db-0", "u1")]).await;
    assert_eq!((results[0].verdict, results[0].kept), (WorkloadVerdict::Reclaim, 0));
    assert_eq!(results[0].addresses, addresses(&sticky));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_waiting_claim_of_a_pod_that_is_gone_ends() {
    let (_cluster, root) = up().await;
    subnet_with_pool(&root, "small", "10.9.9.0/30", json!({"ranges": ["10.9.9.1"]})).await;
    let request = |pod: &str| {
        json!({
            "endpoint": {"kind": "pod", "namespace": "web", "name": pod}, "uid": "u1", "wait": true,
            "interfaces": [{"name": "eth0", "ipv4_pools": ["small"]}],
        })
    };
    for pod in ["first", "second"] {
        let call = Call::post("/v1/allocations").json(&request(pod)).unwrap().within(LONG);
        let _: Value = root.call(call).await.unwrap();
    }
    let results = report(&root, &[deleted("second", "u1")]).await;
    assert_eq!((results[0].verdict, results[0].kept), (WorkloadVerdict::Reclaim, 0));
    let gone = root.call::<Value>(Call::get("/v1/endpoints/pod/default/web/second").within(LONG)).await;
    refused(gone, Code::NotFound);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_is_released_with_all_interfaces_and_families_once_its_grace_is_over() {
    let (_cluster, root) = up().await;
    let interface = |name: &str| json!({"name": name, "ipv4_pools": ["web"], "ipv6_pools": ["web6"]});
    let both = json!({"interfaces": [interface("eth0"), interface("net1")]});
    let given = addresses(&added(&root, "web-0", "u1", both.clone()).await);
    let finished = addresses(&added(&root, "web-1", "u2", both).await);
    assert_eq!((given.len(), finished.len()), (4, 4));
    let now = Timestamp::now().0;
    let terminating = |due_ms| {
        pod(
            "web-0",
            "u1",
            json!({
                "phase": "running", "has_addresses": false, "deletion_due_at": Timestamp(due_ms),
            }),
        )
    };
    let due_at = Timestamp(now + 600_000);
    let early = report(&root, &[terminating(due_at.0)]).await;
    assert_eq!((early[0].verdict, early[0].due_at), (WorkloadVerdict::Later, Some(due_at)));
    let elsewhere = json!({"node": {"name": "n2", "state": "gone"}, "phase": "running",
                           "deletion_due_at": Timestamp(now - 1_000)});
    let elsewhere = report(&root, &[pod("web-0", "u1", elsewhere)]).await;
    assert_eq!(elsewhere[0].reason, WorkloadReason::NodeElsewhere);
    assert_eq!(allocations(&root).await.len(), 8);
    let ended = json!({"phase": "failed", "finished_at": Timestamp(now - 1_000)});
    let results = report(&root, &[terminating(now - 1_000), pod("web-1", "u2", ended)]).await;
    let reasons = [WorkloadReason::TerminatingOnReadyNode, WorkloadReason::Finished];
    for ((result, reason), mut given) in results.into_iter().zip(reasons).zip([given, finished]) {
        assert_eq!(result.reason, reason);
        let mut released = result.addresses;
        released.sort();
        given.sort();
        assert_eq!(released, given);
    }
    assert!(allocations(&root).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_said_to_be_gone_is_not_believed_while_its_agent_is_heard() {
    let (_cluster, root) = up().await;
    let given = added(&root, "web-0", "u1", json!({})).await;
    let overdue = || {
        let due_at = Timestamp(Timestamp::now().0 - 1_000);
        let node = json!({"name": "n1", "state": "gone"});
        pod("web-0", "u1", json!({"phase": "running", "node": node, "deletion_due_at": due_at}))
    };
    let dry = report_to("/v1/workloads?dry_run=true", &[overdue()]);
    let dry: WorkloadsAnswer = root.call(dry).await.unwrap();
    assert_eq!(dry.results[0].reason, WorkloadReason::TerminatingOnGoneNode, "no agent was heard yet");
    assert_eq!(dry.results[0].addresses, addresses(&given));
    let heartbeat = json!({
        "boot_id": "boot", "boot_number": 1, "ready": true, "agent_version": "0.1.0",
        "inventory": Inventory::default().digest(),
    });
    let heartbeat = Call::post("/v1/nodes/default/n1/heartbeat").json(&heartbeat).unwrap().within(LONG);
    let _: Value = root.call(heartbeat).await.unwrap();
    let results = report(&root, &[overdue()]).await;
    assert_eq!((results[0].verdict, results[0].reason), (WorkloadVerdict::Keep, WorkloadReason::NodeHeard));
    assert_eq!(known(&root, addresses(&given)[0]).await.state, "allocated");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_report_takes_several_log_entries() {
    let (_cluster, root) = up().await;
    let mut workloads = Vec::new();
    for number in 0..WORKLOADS_MAX {
        let name = format!("web-{number}");
        if number < 100 {
            let interface = |name: &str| json!({"name": name, "ipv4_pools": ["web"], "ipv6_pools": ["web6"]});
            let interfaces = json!({"interfaces": [interface("eth0"), interface("net1")]});
            added(&root, &name, "u1", interfaces).await;
        }
        workloads.push(deleted(&name, "u1"));
    }
    let results = report(&root, &workloads).await;
    let released = results.iter().map(|result| result.addresses.len());
    assert_eq!(released.collect::<Vec<_>>(), [vec![4; 100], vec![0; WORKLOADS_MAX - 100]].concat());
    assert!(allocations(&root).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn red_team_reports_without_rights_or_beyond_the_limits_are_refused() {
    let (cluster, root) = up().await;
    let client = cluster.members[0].ask();
    let given = added(&root, "web-0", "u1", json!({})).await;
    let node = node_secret(&root, "n1", "n1").await;
    let viewer = make(&root, json!({"name": "viewer", "role": "viewer"})).await.secret.unwrap();
    let prod = json!({"name": "prod", "role": "operator", "realms": ["prod"]});
    let prod = make(&root, prod).await.secret.unwrap();
    let gone = deleted("web-0", "u1");
    // A node may release its own host, and this is a pod.
    let all = [(&node, Code::ForeignNode), (&viewer, Code::Forbidden), (&prod, Code::Forbidden)];
    for (secret, code) in all {
        for path in ["/v1/workloads", "/v1/workloads?dry_run=true"] {
            let call = with(report_to(path, std::slice::from_ref(&gone)), secret);
            refused(client.call::<Value>(call).await, code);
        }
    }
    let own = json!({"realm": "prod", "workloads": [gone]});
    let own = with(Call::post("/v1/workloads").json(&own).unwrap(), &prod);
    let own: WorkloadsAnswer = client.call(own).await.unwrap();
    assert_eq!(own.results[0].verdict, WorkloadVerdict::Unknown, "another endpoint than the default realm's");

    let many: Vec<Value> = (0..=WORKLOADS_MAX).map(|number| deleted(&format!("x-{number}"), "u")).collect();
    let long = deleted("web-0", &"u".repeat(1025));
    let contradiction = vec![gone.clone(), pod("web-0", "u1", json!({"phase": "running"}))];
    for (workloads, code) in [
        (many, Code::LimitExceeded),
        (vec![long], Code::LimitExceeded),
        (vec![deleted("web-0", "u\n1")], Code::InvalidField),
        (contradiction, Code::ConflictingFields),
    ] {
        let answer: Result<Value, Problem> = root.call(report_to("/v1/workloads", &workloads)).await;
        refused(answer, code);
    }
    assert_eq!(report(&root, &[]).await, []);
    assert_eq!(known(&root, addresses(&given)[0]).await.state, "allocated");
}
