//! Requests of a host: take-over after a reinstallation, and addresses in conflict.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::fake::{FakeKernel, link};
use super::session::Session;
use super::status::{HostState, HostStatus};
use super::{follow, hold};
use crate::cluster::Cluster;
use crate::config::Config;
use crate::fakes::{FOREIGN, FakeWire};
use crate::journal::{Journal, JournalFile};
use crate::node::Node;

/// Machine that the fake cluster knows.
const KNOWN: &str = "0123456789abcdef";

#[derive(Debug, Clone, Default)]
struct Fake {
    requests: Arc<Mutex<Vec<Value>>>,
    reports: Arc<Mutex<Vec<Value>>>,
}

impl Fake {
    async fn serve(&self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new()
            .route("/v1/allocations", post(allocate))
            .route("/v1/nodes/{realm}/{name}/probes", post(report))
            .route("/readyz", get(async || StatusCode::OK))
            .with_state(self.clone());
        tokio::spawn(axum::serve(listener, router).into_future());
        url
    }
}

async fn allocate(State(fake): State<Fake>, Json(body): Json<Value>) -> Response {
    fake.requests.lock().unwrap().push(body.clone());
    if body["uid"] != KNOWN && body["take_over"] != true {
        let problem = json!({
            "type": "/docs/problems#host-reinstalled", "title": "", "status": 409, "code": "host-reinstalled",
            "detail": "another machine has the addresses", "help": "Take them over.", "retry": "changed",
            "applied": "no",
        });
        return (StatusCode::CONFLICT, Json(problem)).into_response();
    }
    let given = |address: &str, allocation: u64| {
        json!({
            "address": address, "pool": "p", "allocation": allocation, "checked": false,
            "probes": {"conflicts": true},
        })
    };
    let addresses = [given("10.9.0.7/24", 1), given("10.9.0.8/24", 2)];
    let answer = json!({
        "endpoint": body["endpoint"], "repeated": false, "revision": 1,
        "interfaces": [{"name": "br0", "addresses": addresses}],
    });
    Json(answer).into_response()
}

async fn report(State(fake): State<Fake>, Json(body): Json<Value>) -> Json<Value> {
    fake.reports.lock().unwrap().push(body);
    Json(json!({"recorded": 1, "refused": 0, "jobs": [], "wait_ms": 1000, "revision": 1}))
}

struct Scene {
    fake: Fake,
    kernel: FakeKernel,
    dir: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let kernel = FakeKernel::new(vec![link(2, "br0", 1)], true);
        Self { fake: Fake::default(), kernel, dir: tempfile::tempdir().unwrap() }
    }

    /// Follows the cluster until a state is reached.
    async fn until(&self, machine: &str, host: &str, wire: FakeWire, state: HostState) -> HostStatus {
        let dir = self.dir.path();
        let (file, id, state_dir) = (dir.join("agent.toml"), dir.join("machine-id"), dir.join("state"));
        std::fs::write(&id, machine).unwrap();
        let server = self.fake.serve().await;
        let text = format!(
            "servers = [{server:?}]\nnode = \"n1\"\nstate_dir = {state_dir:?}\n[host]\nrefresh_ms = 50\n\
             machine_id_file = {id:?}\n{host}\n[[interface]]\nname = \"br0\"\nipv4_pools = [\"p\"]\n"
        );
        std::fs::write(&file, text).unwrap();
        let config = Config::read(&file).unwrap();
        let (file, attachments) = JournalFile::open(&config.state_dir).unwrap();
        let journal = Journal::start(file, attachments).unwrap();
        let cluster = Cluster::new(&config.servers, None, None).unwrap();
        let host = config.host.clone().unwrap();
        let mut session =
            Session::open(host, self.kernel.clone(), &state_dir, "b1", Path::new("/none"), &config.node)
                .unwrap();
        hold(&mut session, &wire).await;
        assert_eq!(HostStatus::load(&state_dir).unwrap().state, HostState::Waiting);
        let node = Arc::new(Node::new(config, "b1".to_owned(), cluster, journal, None));
        let following = tokio::spawn(follow(node, session, wire));
        let begun = Instant::now();
        loop {
            let status = HostStatus::load(&state_dir).unwrap();
            if status.state == state {
                following.abort();
                return status;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "{status:?}");
            sleep(Duration::from_millis(5)).await;
        }
    }

    fn addresses(&self) -> BTreeSet<String> {
        self.kernel.state().observed.addresses.iter().map(|one| one.address.to_string()).collect()
    }
}

#[tokio::test]
async fn n5_16_a_reinstalled_host_changes_nothing_until_it_takes_over() {
    let scene = Scene::new();
    let status = scene.until("fedcba98", "", FakeWire::default(), HostState::Reinstalled).await;
    assert!(status.detail.contains("another machine has the addresses"), "{status:?}");
    assert!(scene.kernel.state().changes.is_empty() && scene.addresses().is_empty());
    let first = scene.fake.requests.lock().unwrap()[0].clone();
    assert_eq!(
        first["endpoint"],
        json!({"realm": "default", "kind": "host", "namespace": "default", "name": "n1"})
    );
    assert_eq!((&first["uid"], &first["lifecycle"]), (&json!("fedcba98"), &json!("held")));
    assert_eq!((&first["node"], first.get("take_over")), (&json!("n1"), None));

    let scene = Scene::new();
    scene.until("fedcba98", "take_over = true", FakeWire::default(), HostState::Applied).await;
    assert_eq!(scene.addresses().len(), 2);
}

#[tokio::test]
async fn an_address_that_another_station_uses_is_reported_and_not_configured() {
    let scene = Scene::new();
    let wire = FakeWire::with(&["10.9.0.7"]);
    let probes = wire.probes.clone();
    let status = scene.until(KNOWN, "", wire, HostState::Failed).await;
    assert!(status.detail.contains("10.9.0.7"), "{status:?}");
    assert_eq!(scene.addresses(), BTreeSet::from(["10.9.0.8/24".to_owned()]));
    let report = scene.fake.reports.lock().unwrap()[0].clone();
    assert_eq!(report["results"][0]["address"], "10.9.0.7");
    assert_eq!(report["results"][0]["macs"], json!([FOREIGN.to_string()]));
    let probes = probes.lock().unwrap().clone();
    assert_eq!(probes[0], "Conflict br0 10.9.0.7 10.9.0.8", "{probes:?}");
    assert!(
        probes.iter().any(|one| one.starts_with("Announce br0") && one.ends_with("10.9.0.8")),
        "{probes:?}"
    );
}
