//! Cluster of the tests.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use ipam_api::probe::{ProbesAnswer, ProbesRequest};
use ipam_api::problem::{Code, Problem};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::cluster::Cluster;
use crate::config::Config;
use crate::journal::{Journal, JournalFile, Key};
use crate::node::Node;
use crate::pods::PodView;

/// Address that the cluster has allocated.
#[derive(Debug, Clone)]
struct Given {
    id: u64,
    address: IpAddr,
    is_checked: bool,
}

/// State of the cluster, with the requests so far.
#[derive(Debug, Default)]
pub(crate) struct Model {
    held: Vec<Given>,
    used: usize,
    pub(crate) adds: Vec<Value>,
    pub(crate) reports: Vec<ProbesRequest>,
    pub(crate) releases: Vec<Value>,
    pub(crate) heartbeats: Vec<Value>,
    /// Refuses to record conflicts.
    pub(crate) is_refusing: bool,
    /// Has no address left for a replacement.
    pub(crate) is_exhausted: bool,
    /// Has no leader for ADDs and DELs.
    pub(crate) is_down: bool,
    /// Code with which it refuses all reports.
    pub(crate) refusal: Option<Code>,
    /// Takes reports, and never answers.
    pub(crate) is_hanging: bool,
    /// MAC address of the container, where it is known.
    pub(crate) mac: Option<&'static str>,
    /// Answers to requests for jobs, in order; the last one is repeated.
    pub(crate) jobs: VecDeque<ProbesAnswer>,
}

impl Model {
    /// Ids and addresses, with `!` for unchecked ones.
    pub(crate) fn held(&self) -> Vec<String> {
        let mark = |given: &Given| if given.is_checked { "" } else { "!" };
        self.held.iter().map(|given| format!("{}{}", given.address, mark(given))).collect()
    }

    fn give(&mut self, is_ipv4: bool) -> Given {
        self.used += 1;
        let text = format!("{}{}", if is_ipv4 { "10.0.0." } else { "2001:db8::" }, self.used);
        Given { id: 100 + self.used as u64, address: text.parse().unwrap(), is_checked: false }
    }

    fn add(&mut self, body: Value) -> Value {
        if self.held.is_empty() {
            self.held = vec![self.give(true), self.give(false)];
        }
        let address = |given: &Given| {
            let (length, gateway) =
                if given.address.is_ipv4() { (24, "10.0.0.254") } else { (64, "2001:db8::ff") };
            json!({
                "address": format!("{}/{length}", given.address), "gateway": gateway, "pool": "web",
                "allocation": given.id, "checked": given.is_checked, "mac": self.mac,
                "probes": {"conflicts": !given.is_checked, "gateway": true},
            })
        };
        let addresses: Vec<Value> = self.held.iter().map(address).collect();
        let answer = json!({
            "endpoint": body["endpoint"], "repeated": false, "revision": 1,
            "interfaces": [{"name": body["attachment"]["interface"], "addresses": addresses}],
        });
        self.adds.push(body);
        answer
    }

    fn report(&mut self, request: ProbesRequest) -> ProbesAnswer {
        if request.jobs > 0 {
            self.reports.push(request);
            let next = if self.jobs.len() > 1 { self.jobs.pop_front() } else { self.jobs.front().cloned() };
            return next.unwrap();
        }
        let mut answer = ProbesAnswer {
            recorded: 0,
            refused: 0,
            jobs: Vec::new(),
            next: None,
            wait_ms: 1000,
            revision: 1,
        };
        for result in &request.results {
            let place = self.held.iter().position(|given| Some(given.id) == result.allocation).unwrap();
            if result.macs.is_empty() {
                self.held[place].is_checked = true;
            } else if self.is_refusing {
                answer.refused += 1;
            } else if self.is_exhausted {
                self.held.remove(place);
            } else {
                self.held[place] = self.give(result.address.is_ipv4());
            }
            answer.recorded += u64::from(!self.is_refusing);
        }
        self.reports.push(request);
        answer
    }
}

/// Cluster of the tests.
#[derive(Debug, Clone, Default)]
pub(crate) struct FakeCluster {
    model: Arc<Mutex<Model>>,
    /// Notified when a report arrives.
    pub(crate) asked: Arc<Notify>,
}

impl FakeCluster {
    pub(crate) fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap()
    }

    async fn serve(&self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new()
            .route("/v1/allocations", post(add))
            .route("/v1/attachments/release", post(release))
            .route("/v1/nodes/{realm}/{name}/probes", post(report))
            .route("/v1/nodes/{realm}/{name}/heartbeat", post(heartbeat))
            .with_state(self.clone());
        tokio::spawn(axum::serve(listener, router).into_future());
        url
    }

    /// Node `node-1` with a new journal in `dir`.
    pub(crate) async fn node(&self, dir: &Path, more: &str) -> Arc<Node> {
        let file = dir.join("agent.toml");
        let (server, state) = (self.serve().await, dir.join("state"));
        let text = format!("servers = [{server:?}]\nnode = \"node-1\"\nstate_dir = {state:?}\n{more}");
        std::fs::write(&file, text).unwrap();
        let config = Config::read(&file).unwrap();
        let (file, attachments) = JournalFile::open(&config.state_dir).unwrap();
        let cluster = Cluster::new(&config.servers, None, None).unwrap();
        let journal = Journal::start(file, attachments).unwrap();
        let view = |access| Arc::new(PodView::new(access, config.node.name.clone()).unwrap());
        let pods = config.kubernetes.as_ref().map(view);
        Arc::new(Node::new(config, "b1".to_owned(), cluster, journal, pods))
    }
}

async fn add(State(cluster): State<FakeCluster>, Json(body): Json<Value>) -> Response {
    let mut model = cluster.model();
    let at_us = |body: &Value| body["started"]["at_us"].as_u64();
    if model.is_down {
        return refused(Code::NoLeader);
    }
    if model.releases.iter().any(|release| at_us(release) > at_us(&body)) {
        return refused(Code::AttachmentReleased);
    }
    Json(model.add(body)).into_response()
}

async fn release(State(cluster): State<FakeCluster>, Json(body): Json<Value>) -> Response {
    let mut model = cluster.model();
    if model.is_down {
        return refused(Code::NoLeader);
    }
    model.held.clear();
    model.releases.push(body);
    Json(json!({"addresses": [], "revision": 2})).into_response()
}

fn refused(code: Code) -> Response {
    let problem = Problem::new(code, "so says the test");
    let status = StatusCode::from_u16(problem.status).unwrap();
    (status, Json(problem)).into_response()
}

async fn report(State(cluster): State<FakeCluster>, Json(request): Json<ProbesRequest>) -> Response {
    let (answer, is_hanging) = {
        let mut model = cluster.model();
        let answer = match model.refusal {
            Some(code) => Err(code),
            None => Ok(model.report(request)),
        };
        (answer, model.is_hanging)
    };
    cluster.asked.notify_one();
    if is_hanging {
        std::future::pending::<()>().await;
    }
    match answer {
        Ok(answer) => Json(answer).into_response(),
        Err(code) => refused(code),
    }
}

async fn heartbeat(State(cluster): State<FakeCluster>, Json(request): Json<Value>) -> Json<Value> {
    let answer = json!({
        "boot_number": request["boot_number"], "boot_id": request["boot_id"], "inventory_matches": true,
        "interval_ms": 50, "has_probes": request["links"].is_array(), "revision": 1,
    });
    cluster.model().heartbeats.push(request);
    cluster.asked.notify_one();
    Json(answer)
}

/// Attachment of the tests.
pub(crate) fn key() -> Key {
    Key {
        config: "lan".parse().unwrap(),
        container_id: "c1".parse().unwrap(),
        interface: "eth0".parse().unwrap(),
    }
}

/// Body of an ADD by a process that started at this time.
pub(crate) fn body(at_us: u64) -> Vec<u8> {
    let body = json!({
        "endpoint": {"realm": "default", "kind": "pod", "namespace": "default", "name": "p1"},
        "attachment": {
            "realm": "default", "node": "node-1", "config": "lan", "container_id": "c1", "interface": "eth0",
        },
        "started": {"boot_id": "b1", "at_us": at_us},
    });
    serde_json::to_vec(&body).unwrap()
}
