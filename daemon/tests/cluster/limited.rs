//! Stolen tokens of operators with limits, over HTTP: what they affect ends where their limits do.

use ipam_api::client::{Call, Client};
use ipam_api::{Code, Problem};
use serde_json::{Value, json};

use crate::cluster::access::{add, guarded, make, root, with};
use crate::support::Cluster;

async fn send(client: &Client, secret: &str, call: Call) -> Result<Value, Problem> {
    client.call(with(call, secret)).await
}

/// A cluster with pools of two teams in one subnet; a client; an administrator's secret.
async fn teams() -> (Cluster, Client, String) {
    let cluster = guarded(1).await;
    let admin = make(&root(&cluster), json!({"name": "boss", "role": "admin"})).await.secret.unwrap();
    let client = cluster.ask();
    let pool = |name: &str, range: &str, team: &str| json!({"name": name, "subnet": "lan", "ranges": [range], "labels": {"team": team}});
    for (noun, body) in [
        ("subnets", json!({"name": "lan", "cidr": "10.10.0.0/24"})),
        ("pools", pool("web", "10.10.0.10-10.10.0.19", "web")),
        ("pools", pool("db", "10.10.0.20-10.10.0.29", "db")),
    ] {
        let path = format!("/v1/{noun}/{}", body["name"].as_str().unwrap());
        send(&client, &admin, Call::put(path).json(&body).unwrap()).await.unwrap();
    }
    (cluster, client, admin)
}

fn reserve(addresses: &str) -> Call {
    let body = json!({"name": "attack", "addresses": [addresses], "labels": {"team": "web"}});
    Call::put("/v1/reservations/attack").json(&body).unwrap()
}

#[tokio::test]
async fn red_team_a_team_reserves_the_subnet_of_all() {
    let (cluster, client, admin) = teams().await;
    let body = json!({"name": "web", "role": "operator", "labels": "team=web"});
    let web = make(&root(&cluster), body).await.secret.unwrap();
    let problem = send(&client, &web, reserve("10.10.0.0/24")).await.unwrap_err();
    assert_eq!(problem.code, Code::Forbidden, "{problem}");
    assert!(problem.detail.contains("team=web"), "{problem}");
    // Nor as a step of a transaction, and all clients still get addresses.
    let reservation = json!({"name": "attack", "addresses": ["10.10.0.0/24"], "labels": {"team": "web"}});
    let steps = json!({"steps": [{"method": "PUT", "path": "/v1/reservations/attack", "body": reservation}]});
    let transaction = Call::post("/v1/transactions").json(&steps).unwrap();
    assert_eq!(send(&client, &web, transaction).await.unwrap_err().code, Code::Forbidden);
    let allocate = Call::post("/v1/allocations").json(&add("worker-1", "web-a")).unwrap();
    send(&client, &admin, allocate).await.unwrap();
    send(&client, &web, reserve("10.10.0.15-10.10.0.16")).await.unwrap();
}

#[tokio::test]
async fn red_team_a_realm_deletes_the_pools_of_all() {
    let (cluster, client, admin) = teams().await;
    let token = |name: &str, more: Value| {
        let mut body = json!({"name": name, "role": "operator", "realms": ["prod"]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let prod = make(&root(&cluster), token("prod", json!({}))).await.secret.unwrap();
    for pool in ["web", "db"] {
        let problem = send(&client, &prod, Call::delete(format!("/v1/pools/{pool}"))).await.unwrap_err();
        assert_eq!(problem.code, Code::Forbidden, "{problem}");
        assert!(problem.help.contains("allow_shared"), "{problem:?}");
        send(&client, &admin, Call::get(format!("/v1/pools/{pool}"))).await.unwrap();
    }
    let shared = make(&root(&cluster), token("shared", json!({"allow_shared": true}))).await;
    assert!(shared.allow_shared);
    let shared = shared.secret.unwrap();
    client.send(with(Call::delete("/v1/pools/db"), &shared)).await.unwrap();
}

#[tokio::test]
async fn red_team_an_administrator_of_a_realm_makes_itself_one_of_all() {
    let (cluster, client, _) = teams().await;
    let body = json!({"name": "prod", "role": "admin", "realms": ["prod"]});
    let prod = make(&root(&cluster), body).await.secret.unwrap();
    let wider = json!({"name": "wider", "role": "admin"});
    let refused = [
        Call::post("/v1/tokens").json(&wider).unwrap(),
        Call::post("/v1/tokens/boss/rotate"),
        Call::delete("/v1/tokens/boss"),
    ];
    for call in refused {
        let problem = send(&client, &prod, call).await.unwrap_err();
        assert_eq!(problem.code, Code::Forbidden, "{problem}");
    }
    let own = json!({"name": "own", "role": "operator", "realms": ["prod"]});
    send(&client, &prod, Call::post("/v1/tokens").json(&own).unwrap()).await.unwrap();
    send(&client, &prod, Call::get("/v1/tokens")).await.unwrap();
}
