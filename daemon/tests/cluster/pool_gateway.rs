//! Pools with their own gateway and routes: over HTTP, with `ipamctl`, and in the plugin's result.

use serde_json::{Value, json};

use crate::cluster::command_line::ipamctl;
use crate::support::Cluster;
use crate::support::ask::{get, put};
use crate::support::plugin::{Plugin, network};
use crate::support::raw::ask;

/// Gateway and routes of an ADD's only address.
async fn add(cluster: &Cluster, pool: &str, container: &str) -> (String, Vec<String>) {
    let done = Plugin::new("ADD", container, &network(&cluster.urls(), "n1", &[pool])).run().await;
    let result: Value = serde_json::from_str(&done.succeeds().stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let route = |route: &Value| format!("{} {}", text(&route["dst"]), text(&route["gw"]));
    (text(&result["ips"][0]["gateway"]), result["routes"].as_array().unwrap().iter().map(route).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_gets_the_gateway_and_routes_of_its_pool() {
    let cluster = Cluster::up(3).await;
    let route = |to: &str, gateway: &str| json!({"destination": to, "gateway": gateway});
    let routes = [route("10.7.0.0/16", "10.1.0.7"), route("10.8.0.0/16", "10.1.0.7")];
    let lan = json!({"name": "lan", "cidr": "10.1.0.0/27", "gateway": "10.1.0.1", "routes": routes});
    put(&cluster.ask(), "subnets", lan).await;
    let dmz = json!({"name": "dmz", "subnet": "lan", "ranges": ["10.1.0.8-10.1.0.15"], "gateway": "10.1.0.8",
                     "routes": [route("10.8.0.0/16", "10.1.0.9"), route("10.9.0.0/16", "10.1.0.9")]});
    put(&cluster.ask(), "pools", dmz.clone()).await;
    let shown: Value = get(&cluster.ask(), "/v1/pools/dmz").await.unwrap();
    assert_eq!((&shown["gateway"], &shown["routes"]), (&dmz["gateway"], &dmz["routes"]), "{shown}");
    assert_eq!(shown["status"]["counts"]["excluded"], 1, "{shown}");
    put(&cluster.ask(), "pools", json!({"name": "lab", "subnet": "lan", "ranges": ["10.1.0.16-10.1.0.20"]}))
        .await;

    let of_lab = (
        "10.1.0.1".to_owned(),
        ["0.0.0.0/0 10.1.0.1", "10.7.0.0/16 10.1.0.7", "10.8.0.0/16 10.1.0.7"].map(str::to_owned).to_vec(),
    );
    let of_dmz = (
        "10.1.0.8".to_owned(),
        ["0.0.0.0/0 10.1.0.8", "10.7.0.0/16 10.1.0.7", "10.8.0.0/16 10.1.0.9", "10.9.0.0/16 10.1.0.9"]
            .map(str::to_owned)
            .to_vec(),
    );
    for _ in ["given", "repeated"] {
        assert_eq!(add(&cluster, "lab", "c1").await, of_lab);
        assert_eq!(add(&cluster, "dmz", "c2").await, of_dmz);
    }
    let to = cluster.members[2].client;
    let path = "/v1/attachments/default/n1/lan/c2/eth0";
    let looked: Value = ask(to, "GET", path, &[], &Value::Null).await.json();
    let address = &looked["interface"]["addresses"][0];
    assert_eq!((&address["gateway"], address["routes"].as_array().unwrap().len()), (&json!("10.1.0.8"), 3));

    // By hand, and taken away again: then it is the subnet's.
    let servers = cluster.urls();
    ipamctl(&servers, "pool set dmz --gateway 10.1.0.30 --route 10.9.0.0/16=10.1.0.29").await.ends(0);
    let shown = ipamctl(&servers, "pool show dmz").await.ends(0).stdout;
    assert!(shown.contains("gateway      10.1.0.30, in place of the subnet's"), "{shown}");
    assert!(shown.contains("routes       10.8.0.0/16=10.1.0.9,10.9.0.0/16=10.1.0.29"), "{shown}");
    assert_eq!(add(&cluster, "dmz", "c2").await.0, "10.1.0.30");
    let given_away = ipamctl(&servers, "pool set lab --add-range 10.1.0.28-10.1.0.30").await.ends(1).stderr;
    assert!(
        given_away.contains("10.1.0.30 is the gateway of pool dmz, and allocatable in pool lab"),
        "{given_away}"
    );
    let away = "pool set dmz --no-gateway --remove-route 10.8.0.0/16 --remove-route 10.9.0.0/16";
    ipamctl(&servers, away).await.ends(0);
    assert_eq!(add(&cluster, "dmz", "c2").await, of_lab);
}
