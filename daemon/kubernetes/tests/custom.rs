//! Custom resources: what is applied, refused, shown and ended.

use std::time::Duration;

use ipam_api::{Code, Problem};
use serde_json::{Value, json};

use crate::fixture::{Fixture, ONCE};

const WEB: &str = "/v1/pools/web";
/// Interval of statuses for tests that wait for several.
const SOON: Duration = Duration::from_millis(50);

fn subnet(fixture: &Fixture) {
    fixture.custom("subnets", "lan", json!({"cidr": "10.0.0.0/24"}));
}

#[tokio::test]
async fn objects_are_applied_with_their_name_and_the_manager_and_so_are_changes() {
    let fixture = Fixture::with_custom_resources(SOON);
    fixture.pool("web");
    subnet(&fixture);
    fixture.custom("reservations", "printers", json!({"addresses": ["10.0.0.9"]}));
    // The first round has all kinds, regardless of the order of the lists.
    fixture.servers.change(|model| model.failing = usize::MAX);
    let mut running = fixture.synced().await;
    fixture.watched(["subnets", "pools", "reservations"]).await;
    fixture.servers.change(|model| model.failing = 0);
    let status = fixture.ready("pools", "web", "Serving").await;
    assert_eq!((&status["observedGeneration"], &status["counts"]["free"]), (&json!(1), &json!(10)));
    assert!(status.get("revision").is_none());
    fixture.ready("subnets", "lan", "Applied").await;
    assert_eq!(fixture.ready("reservations", "printers", "Applied").await["held"], 0);
    let pool = fixture.servers.resource(WEB).unwrap();
    assert_eq!((&pool["name"], &pool["managed_by"]), (&json!("web"), &json!("kubernetes/prod")));
    let order: Vec<String> = fixture.servers.sent("/v1/").into_iter().map(|sent| sent.path).collect();
    assert_eq!(order, ["/v1/subnets/lan", WEB, "/v1/reservations/printers"], "a subnet is before its pools");
    fixture.custom("pools", "web", json!({"subnet": "lan", "description": "shop"}));
    let is_new = |status: &Value| status["observedGeneration"] == 2;
    assert_eq!(fixture.status_of("pools", "web", is_new).await["conditions"][0]["observedGeneration"], 2);
    assert_eq!(fixture.servers.resource(WEB).unwrap()["description"], "shop");
    running.compared(3).await;
    assert_eq!(fixture.servers.sent("/v1/pools").len(), 2, "what does not differ is not written");
}

#[tokio::test]
async fn a_change_by_another_client_is_undone() {
    let fixture = Fixture::with_custom_resources(ONCE);
    fixture.pool("web");
    let _running = fixture.synced().await;
    fixture.ready("pools", "web", "Serving").await;
    fixture.servers.change(|model| {
        let (spec, revision) = model.resources.get_mut(WEB).unwrap();
        (spec["default"], *revision) = (json!(true), 100);
    });
    let is_undone =
        |servers: &crate::fixture::Recorder| (servers.resource(WEB)?["default"] == false).then_some(());
    fixture.servers.until("the former spec", is_undone).await;
}

#[tokio::test]
async fn a_refusal_is_a_condition_until_it_ends() {
    let fixture = Fixture::with_custom_resources(SOON);
    let refusal = Problem::new(Code::NotFound, "subnet lan does not exist").at("/subnet");
    fixture.servers.change(|model| model.refusals.insert(WEB.to_owned(), refusal));
    fixture.pool("web");
    let mut running = fixture.synced().await;
    let ready = fixture.ready("pools", "web", "NotFound").await["conditions"][0].clone();
    assert_eq!((&ready["status"], &ready["observedGeneration"]), (&json!("False"), &json!(1)));
    let message = ready["message"].as_str().unwrap();
    assert!(message.starts_with("/subnet: subnet lan does not exist. "), "{message}");
    running.until(|status| status.refused.get(&Code::NotFound) == Some(&1)).await;
    // The subnet now exists, and another object is written.
    fixture.servers.change(|model| model.refusals.clear());
    subnet(&fixture);
    let status = fixture.ready("pools", "web", "Serving").await;
    assert_eq!(status["conditions"][0]["status"], "True");
}

#[tokio::test]
async fn a_refusal_is_tried_again_after_any_write() {
    let mut fixture = Fixture::with_custom_resources(ONCE);
    // No pause ends during this part of the test.
    fixture.interval = ONCE;
    let refusal = Problem::new(Code::NotFound, "subnet lan does not exist");
    fixture.servers.change(|model| model.refusals.insert(WEB.to_owned(), refusal));
    fixture.pool("web");
    let _running = fixture.synced().await;
    fixture.ready("pools", "web", "NotFound").await;
    fixture.servers.change(|model| model.refusals.clear());
    subnet(&fixture);
    fixture.servers.until("the pool", |servers| servers.resource(WEB)).await;
}

#[tokio::test]
async fn a_refusal_is_tried_again_by_itself() {
    let fixture = Fixture::with_custom_resources(ONCE);
    let refusal = Problem::new(Code::Overlap, "so says the test");
    fixture.servers.change(|model| model.refusals.insert(WEB.to_owned(), refusal));
    fixture.pool("web");
    let _running = fixture.synced().await;
    fixture.ready("pools", "web", "Overlap").await;
    fixture.servers.change(|model| model.refusals.clear());
    fixture.servers.until("the pool", |servers| servers.resource(WEB)).await;
}

#[tokio::test]
async fn an_unreadable_object_is_refused_and_others_are_not() {
    let fixture = Fixture::with_custom_resources(ONCE);
    fixture.custom("pools", "range", json!({"subnet": "lan", "ranges": ["10.0.0.9-10.0.0.1"]}));
    let _running = fixture.synced().await;
    fixture.ready("pools", "range", "RangeReversed").await;
    // Such objects exist if the definition differs.
    fixture.define_lax("pools");
    fixture.custom("pools", "bad", json!({"subnet": 7}));
    fixture.custom("pools", "large", json!({"subnet": "lan", "description": "x".repeat(2 << 20)}));
    fixture.custom("pools", &"n".repeat(70), json!({"subnet": "lan"}));
    fixture.cluster.put("/apis/ipamd.internal/v1/pools", json!({"metadata": {"name": "none"}, "spec": [1]}));
    fixture.pool("web");
    fixture.ready("pools", "web", "Serving").await;
    fixture.ready("pools", "bad", "InvalidField").await;
    fixture.ready("pools", "large", "TooLarge").await;
    fixture.ready("pools", &"n".repeat(70), "InvalidField").await;
    fixture.ready("pools", "none", "MalformedBody").await;
    fixture.custom("pools", "bad", json!({"subnet": "lan"}));
    fixture.servers.until("the corrected pool", |servers| servers.resource("/v1/pools/bad")).await;
    assert_eq!(fixture.servers.sent("/v1/pools").len(), 2);
}

#[tokio::test]
async fn resources_of_another_manager_or_of_none_are_left_alone() {
    for managed_by in [json!("terraform"), Value::Null] {
        let fixture = Fixture::with_custom_resources(ONCE);
        let own = json!({"name": "web", "subnet": "lan", "managed_by": managed_by});
        fixture.servers.change(|model| model.resources.insert(WEB.to_owned(), (own.clone(), 1)));
        fixture.pool("web");
        let mut running = fixture.synced().await;
        let status = fixture.ready("pools", "web", "ManagedElsewhere").await;
        assert!(status.get("counts").is_none(), "they are those of another resource");
        fixture.remove_custom("pools", "web");
        running.until(|status| status.counts.custom_resources == 0).await;
        running.compared(4).await;
        assert_eq!(fixture.servers.resource(WEB), Some(own));
    }
}

#[tokio::test]
async fn a_status_is_written_once_in_an_interval_however_many_addresses_are_allocated() {
    let fixture = Fixture::with_custom_resources(ONCE);
    fixture.pool("web");
    let mut running = fixture.synced().await;
    fixture.ready("pools", "web", "Serving").await;
    for held in 1..=5 {
        fixture.servers.change(|model| model.held.insert(WEB.to_owned(), held));
        running.compared(1).await;
    }
    assert_eq!(fixture.patches(), 1, "the interval is not over");
}

#[tokio::test]
async fn a_status_is_written_only_if_it_differs() {
    let fixture = Fixture::with_custom_resources(SOON);
    fixture.pool("web");
    let mut running = fixture.synced().await;
    fixture.ready("pools", "web", "Serving").await;
    fixture.servers.change(|model| model.held.insert(WEB.to_owned(), 3));
    let counts = |held| move |status: &Value| status["counts"]["allocated"] == held;
    let status = fixture.status_of("pools", "web", counts(3)).await;
    let patches = fixture.patches();
    running.compared(5).await;
    assert_eq!(fixture.patches(), patches);
    // The next watcher continues from the status of the object.
    drop(running);
    let mut running = fixture.synced().await;
    running.compared(5).await;
    assert_eq!(fixture.object("pools", "web").unwrap()["status"], status);
    assert_eq!(fixture.patches(), patches);
    let requests = fixture.cluster.requests();
    assert!(!requests.iter().any(|one| one.verb == "get"), "no object is read by itself");
}

#[tokio::test]
async fn a_deleted_object_ends_its_pool_and_its_subnet_afterwards() {
    let fixture = Fixture::with_custom_resources(SOON);
    subnet(&fixture);
    fixture.pool("web");
    fixture.servers.change(|model| model.held.insert(WEB.to_owned(), 2));
    let mut running = fixture.synced().await;
    fixture.ready("pools", "web", "Serving").await;
    let in_use = Problem::new(Code::InUse, "subnet lan has 1 pool");
    fixture.servers.change(|model| model.refusals.insert("/v1/subnets/lan".to_owned(), in_use));
    fixture.remove_custom("subnets", "lan");
    fixture.remove_custom("pools", "web");
    let is_ending =
        |servers: &crate::fixture::Recorder| (servers.resource(WEB)?["terminating"] == true).then_some(());
    fixture.servers.until("the end begins", is_ending).await;
    running.until(|status| status.refused.contains_key(&Code::InUse)).await;
    // An object that is re-created does not count before the pool is deleted.
    fixture.pool("web");
    fixture.ready("pools", "web", "Terminating").await;
    fixture.remove_custom("pools", "web");
    running.until(|status| status.counts.custom_resources == 0).await;
    fixture.servers.change(|model| {
        model.resources.remove(WEB);
        model.refusals.clear();
    });
    let is_gone =
        |servers: &crate::fixture::Recorder| servers.resource("/v1/subnets/lan").is_none().then_some(());
    fixture.servers.until("the subnet is gone", is_gone).await;
    let ends = fixture.servers.sent(WEB).into_iter().filter(|sent| sent.method == "DELETE");
    let ends: Vec<String> = ends.map(|sent| sent.path).collect();
    assert_eq!(ends, [format!("{WEB}?manager=kubernetes%2Fprod&drain=true")], "once");
}

#[tokio::test]
async fn without_the_setting_nothing_is_asked_or_written() {
    let mut fixture = Fixture::with_custom_resources(SOON);
    fixture.status_interval = None;
    fixture.pool("web");
    let mut running = fixture.synced().await;
    running.scans(3).await;
    assert!(fixture.servers.sent("/v1/subnets").is_empty() && fixture.servers.sent("/v1/pools").is_empty());
    assert!(!fixture.cluster.requests().iter().any(|request| request.group == "ipamd.internal"));
}
