//! Many endpoints or allocations in one request: all of them, or none.

use ipam_api::Code;
use serde_json::{Value, json};

use super::{counted, read, with_pools};
use crate::support::raw::ask;

const ALLOCATE: &str = "/v1/allocations/bulk";
const RELEASE: &str = "/v1/allocations/release";

fn request(names: &[String], pools: &[&str]) -> Value {
    json!({"kind": "vm", "namespace": "batch", "names": names,
           "interface": {"name": "eth0", "ipv4_pools": pools}})
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("build-{number}")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bulk_is_one_entry_that_is_known_again() {
    let cluster = with_pools(3).await;
    let to = cluster.members[cluster.follower().await].client;
    let body = request(&names(20), &["web"]);
    let before = cluster.settled().await;
    let tried = ask(to, "POST", &format!("{ALLOCATE}?dry_run=true"), &[], &body).await;
    assert_eq!((tried.status, cluster.settled().await.revision), (201, before.revision), "{tried:?}");
    let single = json!({"endpoint": {"realm": "default", "kind": "vm", "namespace": "batch", "name": "one"},
                        "interfaces": [{"name": "eth0", "ipv4_pools": ["web"]}]});
    let tried = ask(to, "POST", "/v1/allocations?dry_run=true", &[], &single).await;
    assert_eq!((tried.status, counted(to).await), (201, 0), "dry runs give nothing");
    let key = [("idempotency-key", "b1")];
    let done = ask(to, "POST", ALLOCATE, &key, &body).await;
    assert_eq!((done.status, counted(to).await), (201, 20), "{done:?}");
    let given: Value = done.json();
    let lines = given["allocations"].as_array().unwrap();
    assert_eq!(lines.len(), 20, "{given}");
    for (number, line) in lines.iter().enumerate() {
        assert_eq!((&line["name"], &line["pool"]), (&json!(format!("build-{number}")), &json!("web")));
        let shown: Value = read(to, &format!("/v1/allocations/{}", line["allocation"])).await.json();
        assert_eq!((&shown["address"], &shown["endpoint"]["name"]), (&line["address"], &line["name"]));
    }
    assert_eq!((&given["pools"][0]["name"], given["pools"].as_array().unwrap().len()), (&json!("web"), 1));
    let again = ask(to, "POST", ALLOCATE, &key, &body).await;
    assert_eq!(again.headers["idempotency-replayed"], "true", "{again:?}");
    assert_eq!(again.json::<Value>(), given);
    // The endpoints themselves are known again, too, and one is new.
    let more: Value = ask(to, "POST", ALLOCATE, &[], &request(&names(21), &["web"])).await.json();
    let repeated = |line: &Value| line["repeated"] == true;
    let lines = more["allocations"].as_array().unwrap();
    assert_eq!(lines.iter().map(repeated).collect::<Vec<_>>(), [vec![true; 20], vec![false]].concat());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_bulk_changes_nothing_and_names_the_item() {
    let cluster = with_pools(1).await;
    let to = cluster.members[0].client;
    let quota = json!({"realm": "default", "name": "batch", "quota": {"ipv4": 2}});
    assert_eq!(ask(to, "POST", "/v1/namespaces", &[], &quota).await.status, 201);
    let before = cluster.settled().await;
    let refused = ask(to, "POST", ALLOCATE, &[], &request(&names(5), &["web"])).await;
    let problem = refused.problem();
    assert_eq!(problem.code, Code::QuotaExceeded, "{problem:?}");
    assert_eq!(problem.errors[0].pointer, "/names/2", "{problem:?}");
    assert!(problem.detail.starts_with("names[2]: "), "{problem:?}");
    let uid = json!({"kind": "vm", "names": ["a"], "uid": "u", "interface": {"name": "eth0"}});
    assert_eq!(ask(to, "POST", ALLOCATE, &[], &uid).await.problem().code, Code::UnknownField);
    let mut one = request(&names(2), &["web"]);
    one["interface"]["addresses"] = json!(["10.7.0.9"]);
    assert_eq!(ask(to, "POST", ALLOCATE, &[], &one).await.problem().code, Code::ConflictingFields);
    let twice = ask(to, "POST", ALLOCATE, &[], &request(&[names(2), names(1)].concat(), &["web"])).await;
    let problem = twice.problem();
    assert_eq!(
        (problem.code, &*problem.detail),
        (Code::ConflictingFields, "names[0] and names[2] are both build-0")
    );
    let none = ask(to, "POST", ALLOCATE, &[], &request(&[], &["web"])).await.problem();
    assert_eq!((none.code, none.errors[0].pointer.as_str()), (Code::InvalidField, "/names"));
    let many = ask(to, "POST", ALLOCATE, &[], &request(&names(5000), &["web"])).await.problem();
    assert_eq!(many.code, Code::LimitExceeded, "{many:?}");
    assert_eq!(cluster.settled().await.revision, before.revision);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn allocations_are_released_together_and_in_a_transaction() {
    let cluster = with_pools(1).await;
    let to = cluster.members[0].client;
    let given: Value = ask(to, "POST", ALLOCATE, &[], &request(&names(4), &["web"])).await.json();
    let ids: Vec<&Value> =
        given["allocations"].as_array().unwrap().iter().map(|one| &one["allocation"]).collect();
    let body = json!({"allocations": [ids[0], ids[1]]});
    let released: Value = ask(to, "POST", RELEASE, &[], &body).await.json();
    assert_eq!((released["addresses"].as_array().unwrap().len(), &released["gone"]), (2, &json!(0)));
    let released: Value = ask(to, "POST", RELEASE, &[], &body).await.json();
    assert_eq!((released["addresses"].as_array().unwrap().len(), &released["gone"]), (0, &json!(2)));
    let steps = json!({"if": [{"path": "/v1/pools/none", "absent": true}], "steps": [
        {"method": "POST", "path": RELEASE, "body": {"allocations": [ids[2], ids[3]]}},
        {"method": "POST", "path": ALLOCATE, "body": request(&names(3), &["web"])},
    ]});
    let done: Value = ask(to, "POST", "/v1/transactions", &[], &steps).await.json();
    let statuses: Vec<&Value> =
        done["results"].as_array().unwrap().iter().map(|one| &one["status"]).collect();
    assert_eq!(statuses, [&json!(200), &json!(201)], "{done}");
    assert_eq!(done["results"][1]["body"]["allocations"].as_array().unwrap().len(), 3);
    let pool: Value = read(to, "/v1/pools/web").await.json();
    assert_eq!(pool["status"]["counts"]["allocated"], 3);
}
