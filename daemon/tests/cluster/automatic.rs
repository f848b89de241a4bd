//! Automatic pools: created by the first ADD, scaled, and deleted with the application. Through the real
//! plugin, over HTTP and with `ipamctl`.

use serde_json::{Value, json};

use crate::cluster::command_line::ipamctl;
use crate::support::Cluster;
use crate::support::ask::put;
use crate::support::plugin::{Outcome, Plugin, network};
use crate::support::raw::ask;

async fn with_subnets() -> Cluster {
    let cluster = Cluster::up(3).await;
    put(
        &cluster.ask(),
        "subnets",
        json!({"name": "lan", "cidr": "10.1.0.0/28", "gateway": "10.1.0.1", "automatic": {}}),
    )
    .await;
    put(&cluster.ask(), "subnets", json!({"name": "six", "cidr": "2001:db8::/120", "automatic": {}})).await;
    cluster
}

fn web(size: &str, more: Value) -> Value {
    let mut printed = json!({
        "controller": {"group": "apps", "kind": "Deployment", "name": "web", "uid": "u1"},
        "subnets": ["lan", "six"],
        "replicas": 2,
        "automatic_pool": {"size": size},
    });
    printed.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    printed
}

async fn run(cluster: &Cluster, verb: &'static str, pod: &str, printed: Value) -> Outcome {
    let mut conf = network(&cluster.urls(), "n1", &[]);
    conf["args"] = json!({"cni": printed});
    let arguments = format!("IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME={pod};K8S_POD_UID={pod}");
    Plugin::new(verb, pod, &conf).arguments(&arguments).run().await
}

#[track_caller]
fn addresses(outcome: &Outcome) -> Vec<String> {
    outcome.addresses().iter().map(ToString::to_string).collect()
}

/// The pools of a subnet, as they are shown.
async fn pools(cluster: &Cluster, subnet: &str) -> Vec<Value> {
    let path = format!("/v1/pools?subnet={subnet}");
    let page: Value = ask(cluster.members[0].client, "GET", &path, &[], &Value::Null).await.json();
    page["items"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_application_has_a_pool_of_its_own_from_its_first_pod_to_its_end() {
    let cluster = with_subnets().await;
    let servers = cluster.urls();
    let done = async |line: &str| ipamctl(&servers, line).await.ends(0);
    assert!(pools(&cluster, "lan").await.is_empty());
    let first = addresses(&run(&cluster, "ADD", "web-a", web("+1", json!({}))).await);
    assert_eq!(first, ["10.1.0.2", "2001:db8::1"]);
    assert_eq!(addresses(&run(&cluster, "ADD", "web-a", web("+1", json!({}))).await), first, "again");
    let second = addresses(&run(&cluster, "ADD", "web-b", web("+1", json!({}))).await);
    assert_eq!(second, ["10.1.0.3", "2001:db8::2"]);
    let [four] = &pools(&cluster, "lan").await[..] else { panic!("one pool") };
    assert_eq!((&four["ranges"], &four["reclaim"]), (&json!(["10.1.0.2-10.1.0.4"]), &json!(true)));
    let application = &four["status"]["application"];
    assert_eq!(
        (&application["controller"]["name"], &application["size"], &application["standing"]),
        (&json!("web"), &json!("+1"), &json!("present"))
    );
    let name = four["name"].as_str().unwrap();
    let shown = done(&format!("pool show {name}")).await.stdout;
    assert!(
        shown.contains("for eth0 of shop/apps/Deployment/web, +1 for 2 replicas; goes with it"),
        "{shown}"
    );

    // Other requests get none of its addresses, and users can't edit it.
    let stranger = format!("allocate --endpoint host/db --pool {name}");
    let refused = ipamctl(&servers, &stranger).await.ends(1);
    assert!(refused.stderr.contains("for endpoints of its application only"), "{refused:?}");
    let refused = ipamctl(&servers, &format!("pool set {name} --add-range 10.1.0.9")).await;
    assert!(refused.stderr.contains("created for Deployment web"), "{refused:?}");
    done(&format!("pool set {name} --cooling 0s")).await;

    done("endpoint scale apps/Deployment/web --namespace shop --replicas 4").await;
    assert_eq!(pools(&cluster, "lan").await[0]["ranges"], json!(["10.1.0.2-10.1.0.6"]));
    done("endpoint scale apps/Deployment/web --namespace shop --replicas 0").await;
    assert_eq!(pools(&cluster, "lan").await[0]["ranges"], json!(["10.1.0.2-10.1.0.3"]), "both are in use");
    run(&cluster, "DEL", "web-b", web("+1", json!({}))).await.succeeds();
    assert_eq!(pools(&cluster, "lan").await[0]["ranges"], json!(["10.1.0.2"]), "the rest, as it is released");

    done("endpoint end apps/Deployment/web --namespace shop").await;
    assert_eq!(pools(&cluster, "lan").await[0]["terminating"], json!(true), "one pod lives");
    run(&cluster, "DEL", "web-a", web("+1", json!({}))).await.succeeds();
    assert!(pools(&cluster, "lan").await.is_empty() && pools(&cluster, "six").await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_pods_at_once_have_one_pool() {
    let cluster = with_subnets().await;
    let all = (0..8).map(|number| {
        let printed = web("10", json!({"subnets": ["lan"]}));
        let cluster = &cluster;
        async move { run(cluster, "ADD", &format!("web-{number}"), printed).await }
    });
    let mut given: Vec<String> = futures::future::join_all(all).await.iter().flat_map(addresses).collect();
    given.sort();
    given.dedup();
    assert_eq!(given.len(), 8);
    let [pool] = &pools(&cluster, "lan").await[..] else { panic!("one pool") };
    assert_eq!(pool["status"]["counts"]["size"], json!(10));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_request_leaves_no_automatic_pool() {
    let cluster = with_subnets().await;
    for (printed, code) in [
        (web("20", json!({})), 101),
        (web("-1", json!({})), 7),
        (web("++2", json!({})), 7),
        (web("1e9", json!({})), 7),
        (web("0", json!({})), 7),
        (web("1", json!({"controller": null})), 7),
        (web("1", json!({"subnets": null})), 7),
        (web("1", json!({"subnets": ["nowhere"]})), 102),
        (web("1", json!({"automatic_pool": "1"})), 7),
        (web("1", json!({"automatic_pool": {"replicas": 1}})), 7),
        (web("+1", json!({"replicas": null})), 7),
        (web("1", json!({"replicas": -1})), 7),
        (web("1", json!({"automatic_pool": {"size": 1}})), 7),
        (web("1", json!({"automatic_pool": {"size": "1", "replica": 1}})), 7),
    ] {
        run(&cluster, "ADD", "web-a", printed).await.fails(code);
    }
    assert!(pools(&cluster, "lan").await.is_empty());
    // A dry run reports the result, and leaves nothing either.
    let line =
        "allocate --endpoint pod/shop/a --controller apps/Deployment/a --subnet lan --automatic 3 --dry-run";
    let printed = ipamctl(&cluster.urls(), line).await.ends(0);
    assert!(printed.stdout.contains("10.1.0.2/28"), "{printed:?}");
    assert!(pools(&cluster, "lan").await.is_empty());
    let explained = "explain --endpoint pod/shop/a --controller apps/Deployment/a --subnet lan --automatic 3";
    let printed = ipamctl(&cluster.urls(), explained).await.ends(0);
    assert!(printed.stdout.contains("candidates by the application of the endpoint"), "{printed:?}");
    assert!(pools(&cluster, "lan").await.is_empty());
    // Where the subnet allows none, the explanation names the remedy.
    put(&cluster.ask(), "subnets", json!({"name": "closed", "cidr": "10.9.0.0/28"})).await;
    let explained =
        "explain --endpoint pod/shop/a --controller apps/Deployment/a --subnet closed --automatic 3";
    let printed = format!("{:?}", ipamctl(&cluster.urls(), explained).await.ends(1));
    for words in ["subnet closed does not allow automatic pools", "ipamctl subnet set closed --automatic"] {
        assert!(printed.contains(words), "{words}: {printed}");
    }
    let body = json!({"namespace": "shop", "controller": {"kind": "Deployment"}});
    let refused = ask(cluster.members[0].client, "POST", "/v1/controllers/end", &[], &body).await;
    assert_eq!((refused.status, &refused.json::<Value>()["code"]), (422, &json!("invalid-field")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_that_is_kept_outlives_restarts_and_waits_for_its_like() {
    let mut cluster = with_subnets().await;
    let printed = || web("2", json!({"subnets": ["lan"], "automatic_pool": {"size": "2", "reclaim": false}}));
    run(&cluster, "ADD", "web-a", printed()).await.succeeds();
    let before = pools(&cluster, "lan").await[0]["name"].clone();
    run(&cluster, "DEL", "web-a", printed()).await.succeeds();
    let body =
        json!({"namespace": "shop", "controller": {"group": "apps", "kind": "Deployment", "name": "web"}});
    let ended = ask(cluster.members[0].client, "POST", "/v1/controllers/end", &[], &body).await;
    assert_eq!(ended.status, 200);
    cluster.kill_all();
    cluster.start_all();
    cluster.ready().await;
    let kept = pools(&cluster, "lan").await[0].clone();
    assert_eq!((&kept["name"], &kept["status"]["application"]["standing"]), (&before, &json!("ended")));
    let other = web("2", json!({"subnets": ["lan"], "controller": {"kind": "Job", "name": "web"}}));
    run(&cluster, "ADD", "web-j", other).await.succeeds();
    run(&cluster, "ADD", "web-b", printed()).await.succeeds();
    let all = pools(&cluster, "lan").await;
    assert_eq!(all.len(), 2, "{all:#?}");
    let own = all.iter().find(|pool| pool["name"] == before).unwrap();
    assert_eq!(own["status"]["counts"]["allocated"], json!(1), "{own:#}");
}
