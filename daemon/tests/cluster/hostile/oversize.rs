//! Responses above every limit: their caller is refused, and others are unaffected.

use ipam_api::Code;
use ipam_api::client::{Call, Client};
use ipam_api::token::Token;
use serde_json::{Value, json};

use super::others_are_served;
use crate::support::raw::{Raw, ask};
use crate::support::{Cluster, LONG, until};

/// Snapshots often.
const SETTINGS: &str = "heartbeat_ms = 100\nelection_min_ms = 600\nelection_max_ms = 1000\n\
    snapshot_every_entries = 30";
const PATH: &str = "/v1/transactions";
/// As many as a request may name.
const INTERFACES: usize = 16;

struct World {
    cluster: Cluster,
    root: Client,
    secret: String,
}

impl World {
    async fn new() -> Self {
        let cluster = Cluster::of_with(3, SETTINGS).all_up().await;
        let root = Client::over_socket(&cluster.members[0].socket()).unwrap();
        let world = Self { cluster, root, secret: String::new() };
        for (name, cidr) in [("four", "10.0.0.0/16"), ("six", "2001:db8::/64")] {
            world.make("/v1/subnets", json!({"name": name, "cidr": cidr})).await;
            world.make("/v1/pools", json!({"name": name, "subnet": name, "default": true})).await;
        }
        let allocate_request = json!({"name": "node-1", "role": "node", "node": {"name": "node-1"}});
        let token: Token =
            world.root.call(Call::post("/v1/tokens").json(&allocate_request).unwrap()).await.unwrap();
        Self { secret: token.secret.unwrap(), ..world }
    }

    async fn make(&self, path: &str, body: Value) {
        let call = Call::post(path).json(&body).unwrap().within(LONG);
        self.root.call::<Value>(call).await.unwrap_or_else(|problem| panic!("{body}: {problem}"));
    }

    /// Request of the node to a member.
    async fn ask(&self, at: usize, key: &str, steps: &Value) -> Raw {
        let bearer = format!("Bearer {}", self.secret);
        let headers = [("authorization", bearer.as_str()), ("idempotency-key", key)];
        ask(self.cluster.members[at].client, "POST", PATH, &headers, &json!({"steps": steps})).await
    }

    async fn follower(&self) -> usize {
        let leader = self.cluster.leader().await;
        (0..3).find(|at| *at != leader).unwrap()
    }

    /// Sends entries until each member has new snapshots in its data directory.
    async fn until_all_have_new_snapshots(&self) {
        let path = |at: usize| self.cluster.members[at].data_dir.join("snapshot/current");
        let made = |at: usize| std::fs::metadata(path(at)).and_then(|file| file.modified()).ok();
        let before: Vec<_> = (0..3).map(made).collect();
        let mut number = 0;
        until("each member has a new snapshot", async || {
            for _ in 0..10 {
                number += 1;
                let id = format!("{}-{number}", uuid::Uuid::new_v4());
                self.make("/v1/networks", json!({"name": format!("net-{id}")})).await;
            }
            match (0..3).all(|at| made(at) > before[at]) {
                true => Ok(()),
                false => Err(format!("{before:?}")),
            }
        })
        .await;
    }
}

fn allocation(name: &str, interfaces: usize) -> Value {
    let interfaces: Vec<Value> = (0..interfaces).map(|at| json!({"name": format!("e{at}")})).collect();
    json!({"method": "POST", "path": "/v1/allocations", "body": {
        "endpoint": {"kind": "machine", "name": name}, "node": "node-1", "interfaces": interfaces,
    }})
}

/// The request that ended every member at its next snapshot, and at each start after that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn red_team_a_response_that_no_snapshot_could_carry_is_refused() {
    let mut world = World::new().await;
    let mut first = allocation("a", INTERFACES);
    first["body"]["description"] = "\u{1F980}".repeat(1024).into();
    let mut steps = vec![first];
    steps.extend(vec![allocation("a", INTERFACES); 519]);
    let follower = world.follower().await;
    let steps = Value::from(steps);
    let refused = world.ask(follower, "large", &steps).await;
    assert_eq!((refused.status, refused.problem().code), (422, Code::LimitExceeded), "{refused:?}");
    // Nothing of it was applied, and it is refused again.
    let again = world.ask(follower, "large", &steps).await;
    assert_eq!(again.status, 422);
    let held: Value = world.root.call(Call::get("/v1/allocations")).await.unwrap();
    assert_eq!(held["items"], json!([]));

    // The intended request: a thousand allocations of both families.
    let bulk: Value = (0..1000).map(|at| allocation(&format!("h{at}"), 1)).collect();
    let done = world.ask(follower, "bulk", &bulk).await;
    assert_eq!(done.status, 200, "{}", &done.body[..done.body.len().min(2000)]);
    let again = world.ask((follower + 1) % 3, "bulk", &bulk).await;
    assert_eq!((again.status, &again.headers["idempotency-replayed"][..]), (200, "true"));
    assert_eq!(again.json::<Value>()["steps"], done.json::<Value>()["steps"]);

    world.until_all_have_new_snapshots().await;
    for member in &mut world.cluster.members {
        assert!(member.is_up(), "{}", member.tail());
        member.terminate();
        assert!(member.exit().await.success(), "{}", member.tail());
    }
    world.cluster.start_all();
    world.cluster.ready().await;
    world.cluster.leader().await;
    let again = world.ask(follower, "bulk", &bulk).await;
    assert_eq!((again.status, &again.headers["idempotency-replayed"][..]), (200, "true"));
    others_are_served(&world.cluster).await;
}
