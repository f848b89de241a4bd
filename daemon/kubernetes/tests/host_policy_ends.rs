//! Nodes that leave a host policy: their addresses are released on facts only.

use serde_json::json;

use crate::fixture::{Fixture, Recorder, template};

/// Nodes that hold addresses of the policy.
fn holders(servers: &Recorder) -> Vec<String> {
    servers.change(|model| model.hosts.keys().map(|(_, node)| node.clone()).collect())
}

async fn rolled_out(fixture: &Fixture) {
    fixture.host_policy("static-ip", template());
    for node in ["n1", "n2"] {
        fixture.nncp_of(&format!("static-ip.{node}"), |object| object.is_some()).await;
    }
}

async fn only_the_second_holds(fixture: &Fixture) {
    let is_left = |servers: &Recorder| (holders(servers) == ["n2"]).then_some(());
    fixture.servers.until("the first node is released", is_left).await;
    fixture.nncp_of("static-ip.n1", |object| object.is_none()).await;
    assert!(fixture.nncp("static-ip.n2").is_some());
}

#[tokio::test]
async fn n5_7_a_deleted_node_is_released_and_one_that_is_not_ready_is_not() {
    let fixture = Fixture::with_hosts(&["n1", "n2"]);
    let mut running = fixture.synced().await;
    rolled_out(&fixture).await;
    fixture.host("n2", "Unknown");
    assert!(fixture.cluster.remove("/api/v1/nodes/n1"));
    only_the_second_holds(&fixture).await;
    running.scans(3).await;
    assert_eq!(holders(&fixture.servers), ["n2"]);
}

#[tokio::test]
async fn n5_7_a_node_that_went_while_no_watcher_ran_is_released_after_two_scans() {
    let fixture = Fixture::with_hosts(&["n1", "n2"]);
    let running = fixture.synced().await;
    rolled_out(&fixture).await;
    drop(running);
    assert!(fixture.cluster.remove("/api/v1/nodes/n1"));
    let mut running = fixture.synced().await;
    only_the_second_holds(&fixture).await;
    running.scans(2).await;
    assert_eq!(holders(&fixture.servers), ["n2"]);
}

#[tokio::test]
async fn n5_7_a_node_that_went_while_the_servers_had_no_leader_is_released() {
    let fixture = Fixture::with_hosts(&["n1", "n2"]);
    let _running = fixture.synced().await;
    rolled_out(&fixture).await;
    fixture.servers.change(|model| model.failing = 30);
    assert!(fixture.cluster.remove("/api/v1/nodes/n1"));
    only_the_second_holds(&fixture).await;
}

#[tokio::test]
async fn a_list_without_a_node_is_no_fact() {
    let mut fixture = Fixture::with_hosts(&["n1", "n2"]);
    // There is no second scan.
    fixture.interval = crate::fixture::ONCE;
    let running = fixture.synced().await;
    rolled_out(&fixture).await;
    drop(running);
    assert!(fixture.cluster.remove("/api/v1/nodes/n1"));
    let mut running = fixture.synced().await;
    running.until(|status| status.host_policies_compared >= 5).await;
    assert_eq!(holders(&fixture.servers), ["n1", "n2"]);
    assert!(fixture.nncp("static-ip.n1").is_some());
}

#[tokio::test]
async fn a_node_that_no_longer_matches_is_released() {
    let fixture = Fixture::with_hosts(&["n1", "n2"]);
    let _running = fixture.synced().await;
    let mut spec = template();
    spec["nodeSelector"] = json!({"role": "worker"});
    fixture.host_policy("static-ip", spec);
    for node in ["n1", "n2"] {
        fixture.nncp_of(&format!("static-ip.{node}"), |object| object.is_some()).await;
    }
    let labels = json!({"kubernetes.io/hostname": "n1.example", "role": "gateway"});
    let changed = fixture.cluster.change("/api/v1/nodes/n1", |node| node["metadata"]["labels"] = labels);
    assert!(changed);
    only_the_second_holds(&fixture).await;
}

#[tokio::test]
async fn hosts_outside_of_the_cluster_keep_their_addresses() {
    let fixture = Fixture::with_hosts(&["n1", "n2"]);
    let _running = fixture.synced().await;
    rolled_out(&fixture).await;
    fixture.servers.change(|model| {
        for (node, address) in
            [("a-managed", "10.10.10.91"), ("b-heard", "10.10.10.92"), ("z", "10.10.10.93")]
        {
            model.hosts.insert(("static-ip".to_owned(), node.to_owned()), address.to_owned());
        }
        let row = json!({"realm": "prod", "name": "a-managed"});
        model.resources.insert("/v1/nodes/prod/a-managed".to_owned(), (row, 1));
        model.heard.push("b-heard".to_owned());
    });
    let is_left = |servers: &Recorder| (!holders(servers).contains(&"z".to_owned())).then_some(());
    fixture.servers.until("a node without any resource is released", is_left).await;
    assert_eq!(holders(&fixture.servers), ["a-managed", "b-heard", "n1", "n2"]);
}

#[tokio::test]
async fn a_node_that_no_longer_matches_holds_its_addresses_while_its_object_exists() {
    let fixture = Fixture::with_hosts(&["n1", "n2"]);
    let mut running = fixture.synced().await;
    let mut spec = template();
    spec["nodeSelector"] = json!({"role": "worker"});
    fixture.host_policy("static-ip", spec);
    for node in ["n1", "n2"] {
        fixture.nncp_of(&format!("static-ip.{node}"), |object| object.is_some()).await;
    }
    let object = "/apis/nmstate.io/v1/nodenetworkconfigurationpolicies/static-ip.n1";
    let held = json!(["nmstate.io/test"]);
    assert!(fixture.cluster.change(object, |object| object["metadata"]["finalizers"] = held));
    let labels = json!({"kubernetes.io/hostname": "n1.example", "role": "gateway"});
    assert!(fixture.cluster.change("/api/v1/nodes/n1", |node| node["metadata"]["labels"] = labels));
    running.scans(4).await;
    assert!(fixture.nncp("static-ip.n1").is_some());
    assert_eq!(holders(&fixture.servers), ["n1", "n2"]);
    assert!(fixture.cluster.remove(object));
    only_the_second_holds(&fixture).await;
}

#[tokio::test]
async fn releases_name_the_allocations_that_were_read() {
    let fixture = Fixture::with_hosts(&["n1", "n2"]);
    let mut running = fixture.synced().await;
    rolled_out(&fixture).await;
    let of = |node: &str| {
        let key = ("static-ip".to_owned(), node.to_owned());
        fixture.servers.change(|model| model.hosts[&key].rsplit('.').next().unwrap().to_owned())
    };
    let released = format!("/v1/allocations/{}", of("n1"));
    assert!(fixture.cluster.remove("/api/v1/nodes/n1"));
    only_the_second_holds(&fixture).await;
    running.scans(1).await;
    let deletions = fixture.servers.sent("/").into_iter().filter(|sent| sent.method == "DELETE");
    let paths: Vec<String> = deletions.map(|sent| sent.path).collect();
    assert!(paths.contains(&released), "{paths:?}");
    assert!(!paths.iter().any(|path| path.starts_with("/v1/endpoints/")), "{paths:?}");
}
