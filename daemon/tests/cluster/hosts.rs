//! Hosts without an orchestrator, over HTTP and with the real `ipamctl`.

use ipam_api::client::{Call, Client};
use ipam_api::token::Token;
use serde_json::{Value, json};

use crate::cluster::command_line::ipamctl;
use crate::support::ask::make_pools;
use crate::support::raw::ask;
use crate::support::{Cluster, LONG};

fn request(name: &str, uid: &str) -> Value {
    json!({
        "endpoint": {"kind": "host", "name": name}, "uid": uid,
        "interfaces": [{"name": "eth0", "ipv4_pools": ["web"]}],
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn n5_16_a_reinstalled_host_is_asked_whether_it_takes_over() {
    let cluster = Cluster::up(1).await;
    make_pools(&cluster.ask()).await;
    let to = cluster.members[0].client;
    let first = ask(to, "POST", "/v1/allocations", &[], &request("db-07", "machine-1")).await;
    assert_eq!(first.status, 201, "{first:?}");
    let first: Value = first.json();

    let again = request("db-07", "machine-2");
    for path in ["/v1/allocations", "/v1/allocations?dry_run=true", "/v1/allocations/explain"] {
        let refused = ask(to, "POST", path, &[], &again).await;
        let (code, detail) = match path.ends_with("explain") {
            true => {
                let explained: Value = refused.json();
                let problem = &explained["problem"];
                (problem["code"].as_str().unwrap().to_owned(), problem["detail"].to_string())
            }
            false => (refused.problem().code.to_string(), refused.problem().detail),
        };
        assert_eq!(code, "host-reinstalled", "{path}: {detail}");
        assert!(detail.contains("host/db-07") && detail.contains("machine-1"), "{path}: {detail}");
    }
    let held: Value = ask(to, "GET", "/v1/allocations", &[], &Value::Null).await.json();
    assert_eq!(held["items"].as_array().unwrap().len(), 1, "{held}");

    let mut takes_over = again.clone();
    takes_over["take_over"] = json!(true);
    let tried = ask(to, "POST", "/v1/allocations?dry_run=true", &[], &takes_over).await;
    assert!(tried.status < 300, "{tried:?}");
    let show = "/v1/endpoints/host/default/default/db-07";
    let unchanged: Value = ask(to, "GET", show, &[], &Value::Null).await.json();
    assert_eq!(unchanged["uid"], "machine-1", "{unchanged}");
    let taken = ask(to, "POST", "/v1/allocations", &[], &takes_over).await;
    assert_eq!(taken.status, 201, "{taken:?}");
    let taken: Value = taken.json();
    assert_eq!(taken["interfaces"], first["interfaces"], "the same addresses with the same ids");
    let repeated = ask(to, "POST", "/v1/allocations", &[], &again).await;
    assert_eq!((repeated.status, &repeated.json::<Value>()["repeated"]), (200, &json!(true)));
    let changed: Value = ask(to, "GET", show, &[], &Value::Null).await.json();
    assert_eq!(changed["uid"], "machine-2", "{changed}");
    let events: Value =
        ask(to, "GET", "/v1/events?kind=endpoint&reverse=true", &[], &Value::Null).await.json();
    let event = &events["items"][0];
    assert_eq!(
        event["changes"],
        json!([{"field": "uid", "from": "machine-1", "to": "machine-2"}]),
        "{events}"
    );

    // The machine from before is a stranger now, and the command line says what to do.
    let servers = cluster.urls();
    let line = "allocate --endpoint host/db-07 --pool web --uid machine-1";
    let refused = ipamctl(&servers, line).await.ends(1);
    assert!(refused.stderr.contains("--take-over"), "{refused:?}");
    ipamctl(&servers, "allocate --endpoint host/db-07 --pool web --take-over").await.ends(2);
    let back = ipamctl(&servers, &format!("{line} --take-over")).await.ends(0);
    assert!(back.stderr.contains("held by host/db-07"), "{back:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nodes_token_serves_its_own_host_and_no_other() {
    let cluster = Cluster::of_with(1, "[access]\nrequire_tokens = true").all_up().await;
    let root = Client::over_socket(&cluster.members[0].socket()).unwrap();
    make_pools(&root).await;
    let token = json!({"name": "db-07", "role": "node", "node": {"name": "db-07"}});
    let token: Token = root.call(Call::post("/v1/tokens").json(&token).unwrap().within(LONG)).await.unwrap();
    let bearer = format!("Bearer {}", token.secret.unwrap());
    let to = cluster.members[0].client;
    let with = [("authorization", bearer.as_str())];
    let own = |name: &str| {
        let mut body = request(name, "machine-1");
        body["node"] = json!("db-07");
        body
    };
    let path = |name: &str| format!("/v1/endpoints/host/default/default/{name}");
    assert_eq!(ask(to, "POST", "/v1/allocations", &with, &own("db-07")).await.status, 201);
    let shown = ask(to, "GET", &path("db-07"), &with, &Value::Null).await;
    assert_eq!(shown.json::<Value>()["uid"], "machine-1");
    let other = root.call::<Value>(Call::post("/v1/allocations").json(&request("db-08", "m8")).unwrap());
    other.await.unwrap();
    let requested = ask(to, "POST", "/v1/allocations", &with, &own("db-08")).await;
    assert_eq!(requested.problem().code.to_string(), "foreign-node");
    for method in ["GET", "DELETE"] {
        let refused = ask(to, method, &path("db-08"), &with, &Value::Null).await;
        assert_eq!((refused.status, refused.problem().code.to_string().as_str()), (403, "foreign-node"));
    }
    let list = ask(to, "GET", "/v1/endpoints", &with, &Value::Null).await;
    assert_eq!((list.status, list.problem().code.to_string().as_str()), (403, "forbidden"));
    assert_eq!(ask(to, "DELETE", &path("db-07"), &with, &Value::Null).await.status, 200);
    assert_eq!(ask(to, "GET", &path("db-07"), &with, &Value::Null).await.status, 404);
}
