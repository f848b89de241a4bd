//! Roll-out of host policies to nodes.

use serde_json::{Value, json};

use crate::fixture::{Fixture, template};

/// Address of the first interface of a policy of kubernetes-nmstate.
fn address(object: &Value) -> String {
    let address = &object["spec"]["desiredState"]["interfaces"][0]["ipv4"]["address"][0];
    assert_eq!(address["prefix-length"], 24, "numbers stay numbers");
    address["ip"].as_str().unwrap().to_owned()
}

async fn present(fixture: &Fixture, name: &str) -> Value {
    fixture.nncp_of(name, |object| object.is_some()).await.unwrap()
}

/// Waits for the reason of the condition `Available`.
async fn available(fixture: &Fixture, reason: &str) -> Value {
    fixture
        .status_of("hostpolicies", "static-ip", |status| {
            let conditions = status["conditions"].as_array().into_iter().flatten();
            conditions.into_iter().any(|one| one["type"] == "Available" && one["reason"] == reason)
        })
        .await
}

fn message(status: &Value) -> &str {
    let conditions = status["conditions"].as_array().unwrap();
    conditions.iter().find(|one| one["type"] == "Available").unwrap()["message"].as_str().unwrap()
}

#[tokio::test]
async fn n5_4_each_node_gets_one_policy_with_its_own_address() {
    let fixture = Fixture::with_hosts(&["n1", "n2"]);
    fixture.host_policy("static-ip", template());
    let _running = fixture.synced().await;
    let (one, two) = (present(&fixture, "static-ip.n1").await, present(&fixture, "static-ip.n2").await);
    assert_ne!(address(&one), address(&two));
    assert_eq!(one["spec"]["nodeSelector"], json!({"kubernetes.io/hostname": "n1.example"}));
    assert!(one["spec"].get("capture").is_none(), "no capture is left for nmpolicy");
    assert_eq!(one["metadata"]["labels"]["ipamd.internal/host-policy"], "static-ip");
    available(&fixture, "RollingOut").await;
    fixture.configured("static-ip.n1", "Available");
    fixture.configured("static-ip.n2", "Available");
    let status = available(&fixture, "Configured").await;
    assert_eq!((&status["nodes"]["available"], &status["nodes"]["matching"]), (&json!(2), &json!(2)));
}

#[tokio::test]
async fn n5_5_a_policy_that_is_created_again_has_the_same_addresses() {
    let fixture = Fixture::with_hosts(&["n1"]);
    fixture.host_policy("static-ip", template());
    let _running = fixture.synced().await;
    let before = present(&fixture, "static-ip.n1").await;
    fixture.remove_custom("hostpolicies", "static-ip");
    fixture.nncp_of("static-ip.n1", |object| object.is_none()).await;
    fixture.host_policy("static-ip", template());
    let after = present(&fixture, "static-ip.n1").await;
    assert_eq!(address(&before), address(&after));
    assert_ne!(before["metadata"]["uid"], after["metadata"]["uid"]);
}

#[tokio::test]
async fn n5_6_a_third_node_gets_its_own_policy_and_no_other_one_is_written() {
    let fixture = Fixture::with_hosts(&["n1", "n2"]);
    fixture.host_policy("static-ip", template());
    let mut running = fixture.synced().await;
    for name in ["static-ip.n1", "static-ip.n2"] {
        present(&fixture, name).await;
        fixture.configured(name, "Available");
    }
    available(&fixture, "Configured").await;
    let (before, writes) = (fixture.nncp("static-ip.n1"), fixture.nncp_writes());
    fixture.host("n3", "True");
    present(&fixture, "static-ip.n3").await;
    fixture.configured("static-ip.n3", "Available");
    let is_third = |status: &Value| status["nodes"]["available"] == 3;
    fixture.status_of("hostpolicies", "static-ip", is_third).await;
    let compared = running.status.borrow().host_policies_compared;
    running.until(|status| status.host_policies_compared >= compared + 3).await;
    assert_eq!(fixture.nncp_writes(), writes + 1);
    assert_eq!(fixture.nncp("static-ip.n1"), before);
}

#[tokio::test]
async fn a_roll_out_goes_in_steps_and_a_node_that_fails_stops_it() {
    let fixture = Fixture::with_hosts(&["n1", "n2", "n3"]);
    let mut spec = template();
    spec["maxUnavailable"] = json!(1);
    fixture.host_policy("static-ip", spec);
    let mut running = fixture.synced().await;
    present(&fixture, "static-ip.n1").await;
    let compared = running.status.borrow().host_policies_compared;
    running.until(|status| status.host_policies_compared >= compared + 3).await;
    assert!(fixture.nncp("static-ip.n2").is_none(), "the first one is not configured");
    fixture.configured("static-ip.n1", "Degraded");
    let status = available(&fixture, "Degraded").await;
    assert!(message(&status).contains("node n1 failed: no link; the roll-out is stopped"), "{status}");
    fixture.configured("static-ip.n1", "Available");
    present(&fixture, "static-ip.n2").await;
    assert!(fixture.nncp("static-ip.n3").is_none());
}

#[tokio::test]
async fn n5_8_resets_of_one_node_and_of_the_policy_give_new_addresses_once() {
    let fixture = Fixture::with_hosts(&["n1", "n2"]);
    fixture.host_policy("static-ip", template());
    let mut running = fixture.synced().await;
    let one = address(&present(&fixture, "static-ip.n1").await);
    let two = address(&present(&fixture, "static-ip.n2").await);
    fixture.reset_node("static-ip.n1", "traffic-1");
    let differs =
        |object: Option<&Value>, former: &str| object.is_some_and(|object| address(object) != former);
    let object = fixture.nncp_of("static-ip.n1", |object| differs(object, &one)).await.unwrap();
    assert!(object["metadata"]["annotations"].get("nmstate.io/reset-ippool").is_none());
    assert_eq!(address(&fixture.nncp("static-ip.n2").unwrap()), two);
    let one = address(&object);
    fixture.annotate("hostpolicies", "static-ip", "ipamd.internal/reset", Some("7"));
    for (name, former) in [("static-ip.n1", &one), ("static-ip.n2", &two)] {
        fixture.nncp_of(name, |object| differs(object, former)).await;
        fixture.configured(name, "Available");
    }
    let is_seen = |status: &Value| status["observedReset"] == "7";
    fixture.status_of("hostpolicies", "static-ip", is_seen).await;
    let writes = fixture.nncp_writes();
    let compared = running.status.borrow().host_policies_compared;
    running.until(|status| status.host_policies_compared >= compared + 3).await;
    assert_eq!(fixture.nncp_writes(), writes, "a value is handled once");
}

#[tokio::test]
async fn n5_9_an_exhausted_pool_is_named_and_a_larger_one_lets_the_node_go_on() {
    let fixture = Fixture::with_hosts(&["n1", "n2"]);
    fixture.servers.change(|model| {
        model.host_addresses = Some(1);
        let pool = json!({"name": "traffic-1", "subnet": "lan"});
        model.resources.insert("/v1/pools/traffic-1".to_owned(), (pool, 1));
        model.held.insert("/v1/pools/traffic-1".to_owned(), 10);
        model.allocations = vec![json!({
            "id": 1, "address": "10.10.10.1/24", "network": "default", "subnet": "lan", "pool": "traffic-1",
            "interface": "eth1", "node": "n1", "lifecycle": "held", "checked": false,
            "endpoint": {"realm": "prod", "kind": "host", "namespace": "static-ip", "name": "n1"},
            "created_at": "2026-01-01T00:00:00Z", "created_by": "x",
        })];
    });
    fixture.host_policy("static-ip", template());
    let _running = fixture.synced().await;
    let status = available(&fixture, "PoolExhausted").await;
    let text = message(&status);
    let expected = "pool traffic-1 has no free address: 10 of 10 are held, by n1 (10.10.10.1) and 9 more";
    assert!(text.contains(expected), "{text}");
    fixture.servers.change(|model| model.host_addresses = Some(2));
    present(&fixture, "static-ip.n1").await;
    present(&fixture, "static-ip.n2").await;
}

#[tokio::test]
async fn objects_of_others_are_never_touched() {
    let fixture = Fixture::with_hosts(&["n1"]);
    let foreign = json!({"metadata": {"name": "static-ip.n1"}, "spec": {"desiredState": {"a": 1}}});
    fixture.cluster.put("/apis/nmstate.io/v1/nodenetworkconfigurationpolicies", foreign);
    fixture.host_policy("static-ip", template());
    let _running = fixture.synced().await;
    let status = available(&fixture, "ManagedElsewhere").await;
    assert!(message(&status).contains("node n1"), "{status}");
    fixture.remove_custom("hostpolicies", "static-ip");
    let is_gone = |servers: &crate::fixture::Recorder| {
        servers.resource("/v1/host-policies/static-ip").is_none().then_some(())
    };
    fixture.servers.until("the policy is gone", is_gone).await;
    assert_eq!((fixture.nncp_writes(), fixture.nncp("static-ip.n1").is_some()), (0, true));
}

#[tokio::test]
async fn a_changed_object_is_written_anew_and_so_is_a_changed_template() {
    let fixture = Fixture::with_hosts(&["n1"]);
    fixture.host_policy("static-ip", template());
    let _running = fixture.synced().await;
    let before = present(&fixture, "static-ip.n1").await;
    fixture.configured("static-ip.n1", "Available");
    let path = "/apis/nmstate.io/v1/nodenetworkconfigurationpolicies/static-ip.n1";
    assert!(
        fixture.cluster.change(path, |object| object["spec"]["desiredState"] = json!({"interfaces": []}))
    );
    let is_restored = |object: Option<&Value>| object.is_some_and(|one| one["spec"] == before["spec"]);
    fixture.nncp_of("static-ip.n1", is_restored).await;
    fixture.configured("static-ip.n1", "Available");
    let mut spec = template();
    spec["desiredState"]["interfaces"][0]["mtu"] = json!(9000);
    fixture.host_policy("static-ip", spec);
    let is_new = |object: Option<&Value>| {
        object.is_some_and(|one| one["spec"]["desiredState"]["interfaces"][0]["mtu"] == 9000)
    };
    let after = fixture.nncp_of("static-ip.n1", is_new).await.unwrap();
    assert_eq!(address(&before), address(&after));
}

#[tokio::test]
async fn without_kubernetes_nmstate_the_status_says_so_until_it_is_installed() {
    let fixture = Fixture::with_custom_resources(std::time::Duration::from_millis(50));
    fixture.host("n1", "True");
    fixture.host_policy("static-ip", template());
    let mut running = fixture.synced().await;
    available(&fixture, "NmstateMissing").await;
    running.scans(2).await;
    assert_eq!(running.status.borrow().error, None, "it is no error");
    fixture.define_nmstate();
    present(&fixture, "static-ip.n1").await;
}

#[tokio::test]
async fn a_refused_node_is_named_and_other_nodes_go_on() {
    let fixture = Fixture::with_hosts(&["n2"]);
    let bare = json!({"metadata": {"name": "n1", "labels": {"role": "worker"}}});
    fixture.cluster.put("/api/v1/nodes", bare);
    let mut spec = template();
    spec["maxUnavailable"] = json!(1);
    fixture.host_policy("static-ip", spec);
    let _running = fixture.synced().await;
    present(&fixture, "static-ip.n2").await;
    let status = available(&fixture, "InvalidField").await;
    assert!(message(&status).contains("node n1 has no label kubernetes.io/hostname"), "{status}");
}

#[tokio::test]
async fn a_reset_that_is_repeated_keeps_the_new_address() {
    let fixture = Fixture::with_hosts(&["n1"]);
    fixture.host_policy("static-ip", template());
    let mut running = fixture.synced().await;
    let before = address(&present(&fixture, "static-ip.n1").await);
    let plural = "nodenetworkconfigurationpolicies";
    fixture.cluster.fault(test_apiserver::Fault::Forbid { verb: "delete", plural });
    fixture.reset_node("static-ip.n1", "traffic-1");
    let is_reset = |servers: &crate::fixture::Recorder| {
        let resets = servers.sent("/v1/host-policies/static-ip/reset");
        (resets.len() >= 3).then_some(resets)
    };
    let resets = fixture.servers.until("the reset is repeated", is_reset).await;
    assert!(resets.iter().all(|sent| sent.key.is_some() && sent.key == resets[0].key), "{resets:?}");
    fixture.cluster.fault(test_apiserver::Fault::Heal);
    let is_new = |object: Option<&Value>| object.is_some_and(|object| address(object) != before);
    let after = address(&fixture.nncp_of("static-ip.n1", is_new).await.unwrap());
    assert_eq!(after, "10.10.10.2");
    let compared = running.status.borrow().host_policies_compared;
    running.until(|status| status.host_policies_compared >= compared + 2).await;
}

#[tokio::test]
async fn a_refused_node_keeps_its_addresses_in_a_reset() {
    let fixture = Fixture::with_hosts(&["n1"]);
    fixture.host_policy("static-ip", template());
    let _running = fixture.synced().await;
    present(&fixture, "static-ip.n1").await;
    let labels = json!({"role": "worker"});
    assert!(fixture.cluster.change("/api/v1/nodes/n1", |node| node["metadata"]["labels"] = labels));
    fixture.reset_node("static-ip.n1", "traffic-1");
    let status = available(&fixture, "InvalidField").await;
    assert!(message(&status).contains("node n1 has no label kubernetes.io/hostname"), "{status}");
    assert!(fixture.servers.sent("/v1/host-policies/static-ip/reset").is_empty());
}

#[tokio::test]
async fn nodes_that_failed_go_on_one_after_another() {
    let fixture = Fixture::with_hosts(&["n1", "n2", "n3"]);
    fixture.servers.change(|model| model.host_addresses = Some(0));
    let mut spec = template();
    spec["maxUnavailable"] = json!(1);
    fixture.host_policy("static-ip", spec);
    let mut running = fixture.synced().await;
    available(&fixture, "PoolExhausted").await;
    let compared = running.status.borrow().host_policies_compared;
    running.until(|status| status.host_policies_compared >= compared + 3).await;
    fixture.servers.change(|model| model.host_addresses = None);
    let has_any =
        |servers: &crate::fixture::Recorder| servers.change(|model| (!model.hosts.is_empty()).then_some(()));
    fixture.servers.until("a node has an address", has_any).await;
    let compared = running.status.borrow().host_policies_compared;
    running.until(|status| status.host_policies_compared >= compared + 3).await;
    let present = ["n1", "n2", "n3"].map(|node| fixture.nncp(&format!("static-ip.{node}")).is_some());
    assert_eq!(present.into_iter().filter(|is_present| *is_present).count(), 1);
}

#[tokio::test]
async fn nodes_with_one_host_name_get_no_object_and_are_named() {
    let fixture = Fixture::with_hosts(&["n1", "n3"]);
    let labels = json!({"kubernetes.io/hostname": "n1.example", "role": "worker"});
    fixture.cluster.put("/api/v1/nodes", json!({"metadata": {"name": "n2", "labels": labels}}));
    fixture.host_policy("static-ip", template());
    let _running = fixture.synced().await;
    let status = available(&fixture, "InvalidField").await;
    let expected = "nodes n1 and n2 have the same label kubernetes.io/hostname=n1.example";
    assert!(message(&status).contains(expected), "{status}");
    present(&fixture, "static-ip.n3").await;
    assert!(["static-ip.n1", "static-ip.n2"].iter().all(|name| fixture.nncp(name).is_none()));
    fixture.host("n2", "True");
    present(&fixture, "static-ip.n1").await;
    present(&fixture, "static-ip.n2").await;
}

#[tokio::test]
async fn a_copy_of_an_object_stays() {
    let fixture = Fixture::with_hosts(&["n1"]);
    fixture.host_policy("static-ip", template());
    let mut running = fixture.synced().await;
    let mut copy = present(&fixture, "static-ip.n1").await;
    copy["metadata"] = json!({
        "name": "backup",
        "labels": copy["metadata"]["labels"], "annotations": copy["metadata"]["annotations"],
    });
    fixture.cluster.put("/apis/nmstate.io/v1/nodenetworkconfigurationpolicies", copy);
    fixture.remove_custom("hostpolicies", "static-ip");
    fixture.nncp_of("static-ip.n1", |object| object.is_none()).await;
    let compared = running.status.borrow().host_policies_compared;
    running.until(|status| status.host_policies_compared >= compared + 3).await;
    assert!(fixture.nncp("backup").is_some());
}

#[tokio::test]
async fn a_watcher_that_starts_repeats_no_reset_before_the_policies_are_listed() {
    let fixture = Fixture::with_hosts(&["n1"]);
    fixture.host_policy("static-ip", template());
    let running = fixture.synced().await;
    let before = address(&present(&fixture, "static-ip.n1").await);
    fixture.annotate("hostpolicies", "static-ip", "ipamd.internal/reset", Some("7"));
    let is_new = |object: Option<&Value>| object.is_some_and(|object| address(object) != before);
    let after = address(&fixture.nncp_of("static-ip.n1", is_new).await.unwrap());
    fixture.configured("static-ip.n1", "Available");
    let is_seen = |status: &Value| status["observedReset"] == "7";
    fixture.status_of("hostpolicies", "static-ip", is_seen).await;
    drop(running);
    let path = "/apis/nmstate.io/v1/nodenetworkconfigurationpolicies/static-ip.n1";
    let other = json!({"interfaces": []});
    assert!(fixture.cluster.change(path, |object| object["spec"]["desiredState"] = other.clone()));
    fixture.cluster.fault(test_apiserver::Fault::Forbid { verb: "list", plural: "hostpolicies" });
    let mut running = fixture.synced().await;
    running.until(|status| status.host_policies_compared >= 5).await;
    fixture.cluster.fault(test_apiserver::Fault::Heal);
    let is_restored = |object: Option<&Value>| {
        object.is_some_and(|one| {
            let is_written = one["spec"]["desiredState"] != other;
            is_written && one["metadata"]["annotations"]["ipamd.internal/observed-reset"] == "7"
        })
    };
    let restored = fixture.nncp_of("static-ip.n1", is_restored).await.unwrap();
    assert_eq!(address(&restored), after);
}

#[tokio::test]
async fn a_list_that_is_not_complete_is_no_missing_kind() {
    let fixture = Fixture::with_hosts(&["n1"]);
    let plural = "nodenetworkconfigurationpolicies";
    fixture.cluster.fault(test_apiserver::Fault::Forbid { verb: "list", plural });
    fixture.host_policy("static-ip", template());
    let mut running = fixture.synced().await;
    let is_applied = |servers: &crate::fixture::Recorder| servers.resource("/v1/host-policies/static-ip");
    fixture.servers.until("the policy is applied", is_applied).await;
    let compared = running.status.borrow().host_policies_compared;
    running.until(|status| status.host_policies_compared >= compared + 5).await;
    let status = fixture.object("hostpolicies", "static-ip").unwrap()["status"].to_string();
    assert!(!status.contains("NmstateMissing"), "{status}");
    fixture.cluster.fault(test_apiserver::Fault::Heal);
    present(&fixture, "static-ip.n1").await;
}
