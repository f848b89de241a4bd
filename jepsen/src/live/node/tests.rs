//! Tests of nodes and their workloads against a cluster of three members in a network of their own.
//!
//! They need root, `/dev/net/tun`, iproute2 and the programs of the workspace: `cargo build --workspace
//! --bins`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;

use ipam_api::client::{Call, Client};
use ipam_api::resource::{Allocation, Page};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::{
    LiveNode, NodeSettings, Station, boot_nodes, kill_agents, lose_nodes, pause_agents, start_agents,
};
use crate::Random;
use crate::history::{Function, Operation, Recorder, Type};
use crate::live::network::{Host, Network};
use crate::workload::{Node, Phase, Server, Servers, Session, Workload};

const TOML: &str = "log = \"warn\"\ninsecure = true\n[raft]\nheartbeat_ms = 100\nelection_min_ms = 600\n\
                    election_max_ms = 1000\nlease_grace_ms = 500\n[gc]\nnode_grace_ms = 30000\n";

/// Cluster, two nodes and a foreign station.
struct Lab {
    nodes: Vec<Arc<LiveNode>>,
    station: Station,
    members: Vec<Child>,
    urls: Vec<String>,
    client: Arc<Host>,
    dir: TempDir,
    _network: Network,
}

impl Lab {
    fn make() -> Self {
        let (network, dir) = (Network::make(1).unwrap(), TempDir::with_prefix("ipam-jepsen-nodes-").unwrap());
        std::fs::write(dir.path().join("ipamd.toml"), TOML).unwrap();
        let peers = ["n1=10.77.0.1:7441", "n2=10.77.0.2:7441", "n3=10.77.0.3:7441"];
        let member = |number: u16| {
            let (name, address) = (format!("n{number}"), format!("10.77.0.{number}"));
            let host = network.add_host(&name, number).unwrap();
            let mut command = host.command(program("ipamd"));
            command.args(["serve", "--stop-with-parent", "--name", &name, "--config"]);
            command.arg(dir.path().join("ipamd.toml")).arg("--data-dir").arg(dir.path().join(&name));
            command.args(["--client-listen", &format!("{address}:7440")]);
            command.args(["--peer-listen", &format!("{address}:7441")]);
            command.args(peers.iter().flat_map(|peer| ["--member", peer])).env_clear();
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        };
        let members: Vec<Child> = (1..=3).map(member).collect();
        let urls: Vec<String> = (1..=3).map(|number| format!("http://10.77.0.{number}:7440")).collect();
        let node = |(name, number): (&str, u8)| {
            let host = network.add_host(name, number.into()).unwrap();
            Arc::new(
                LiveNode::new(NodeSettings {
                    name: name.to_owned(),
                    number,
                    netns: host.netns().to_owned(),
                    dir: dir.path().join(name),
                    agent: program("ipam-agent"),
                    plugin: program("ipam-cni"),
                    servers: urls.clone(),
                    ca_file: None,
                    token_file: None,
                    more: String::new(),
                    test_options: Vec::new(),
                })
                .unwrap(),
            )
        };
        let nodes = [("c1", 11), ("c2", 12)].map(node).into();
        let station = Station::new(network.add_host("e1", 21).unwrap().netns().to_owned());
        let client = network.add_host("x1", 31).unwrap();
        Self { nodes, station, members, urls, client, dir, _network: network }
    }

    /// Runs a test on a host of the network.
    fn run<F: Future<Output = ()> + Send + 'static>(test: impl FnOnce(Arc<Self>) -> F + Send + 'static) {
        let lab = Arc::new(Self::make());
        let runtime = lab.client.runtime(2).unwrap();
        let inside = Arc::clone(&lab);
        let task = runtime.spawn(async move {
            inside.station.be_gateway().await.unwrap();
            for node in &inside.nodes {
                node.start_agent().await.unwrap();
            }
            test(inside).await;
        });
        runtime.block_on(task).unwrap();
    }

    fn servers(&self) -> Servers {
        let client = |urls: &[String]| Arc::new(Client::new(urls).unwrap()) as Arc<dyn Server>;
        let each = self
            .urls
            .iter()
            .zip(1..)
            .map(|(url, number)| (format!("n{number}"), client(std::slice::from_ref(url))));
        Servers { all: client(&self.urls), each: each.collect() }
    }

    async fn prepare(&self, workload: &dyn Workload) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while let Err(error) = workload.prepare(self.servers().all.as_ref()).await {
            assert!(Instant::now() < deadline, "{error:#}");
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Runs a workload, with faults, and returns its history.
    async fn work(&self, name: &str, faults: impl AsyncFnOnce()) -> Vec<Operation> {
        let workload = crate::workload::all().into_iter().find(|one| one.name() == name).unwrap();
        self.prepare(workload.as_ref()).await;
        let file = self.dir.path().join(format!("{name}.jsonl"));
        let recorder = Recorder::new(Box::new(std::fs::File::create(&file).unwrap()));
        let (phase, phases) = watch::channel(Phase::Work);
        let workload: Arc<dyn Workload> = workload.into();
        let mut sessions = tokio::task::JoinSet::new();
        for number in 0..workload.sessions() {
            let node = workload.needs_node().then(|| Arc::clone(&self.nodes[number % 2]) as Arc<dyn Node>);
            let (recorder, random) = (recorder.clone(), Random::new(number as u64));
            let session =
                Session::new(workload.name(), number, random, recorder, self.servers(), node, phases.clone());
            let workload = Arc::clone(&workload);
            sessions.spawn(async move { workload.run(session).await });
        }
        faults().await;
        phase.send(Phase::Settle).unwrap();
        let settled = tokio::time::timeout(Duration::from_secs(30), async {
            while sessions.join_next().await.transpose().unwrap().is_some() {}
        });
        settled.await.expect("sessions end by themselves");
        recorder.finish().unwrap();
        if let Some(keep) = std::env::var_os("IPAM_JEPSEN_KEEP") {
            std::fs::copy(&file, PathBuf::from(keep).join(format!("{name}.jsonl"))).unwrap();
        }
        let text = std::fs::read_to_string(&file).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    async fn allocations(&self) -> Vec<Allocation> {
        let answer = self.servers().all.send(Call::get("/v1/allocations?limit=1000")).await.unwrap();
        answer.read::<Page<Allocation>>().unwrap().items
    }

    /// Waits until no allocation of a pool is left.
    async fn is_free(&self, pool: &str) {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let all = self.allocations().await;
            let left: Vec<_> = all.iter().filter(|one| one.pool.as_str() == pool).collect();
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "{} left: {:?}", left.len(), left[0]);
            sleep(Duration::from_millis(200)).await;
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for member in &mut self.members {
            member.kill().unwrap();
            member.wait().unwrap();
        }
    }
}

fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().and_then(|dir| dir.parent()).unwrap().join(name);
    assert!(path.exists(), "{} is missing; first: cargo build --workspace --bins", path.display());
    path
}

/// Each invoke has one end of the same process, and a process has one operation at a time.
fn is_well_formed(history: &[Operation]) {
    let mut open = std::collections::BTreeMap::new();
    for (operation, index) in history.iter().zip(0..) {
        assert_eq!(operation.index, index);
        if operation.is_invoke() {
            assert_eq!(open.insert(operation.process, operation.f), None, "{operation:?}");
        } else {
            assert_eq!(open.remove(&operation.process), Some(operation.f), "{operation:?}");
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

fn count(history: &[Operation], f: Function, kind: Type) -> usize {
    history.iter().filter(|one| one.f == f && one.kind == kind).count()
}

/// Codes of all ends that are no success.
fn errors(history: &[Operation]) -> std::collections::BTreeMap<String, usize> {
    let mut errors = std::collections::BTreeMap::new();
    for one in history.iter().filter(|one| !one.is_invoke() && one.kind != Type::Ok) {
        let error = one.value.error.clone().unwrap_or_default();
        *errors.entry(format!("{:?} {:?} {error}", one.f, one.kind)).or_default() += 1;
    }
    errors
}

fn is_late(operation: &Operation) -> bool {
    operation.value.detail.get("late").is_some_and(|late| *late == true)
}

#[test]
fn runtimes_kill_hold_and_race_plugins_without_faults() {
    Lab::run(|lab| async move {
        let history = lab.work("cni", async || sleep(Duration::from_secs(10)).await).await;
        is_well_formed(&history);
        println!("{} operations, {:?}", history.len() / 2, errors(&history));
        for f in [Function::Add, Function::Check, Function::Del, Function::Farm] {
            assert!(count(&history, f, Type::Ok) >= 5, "{f:?}");
        }
        assert_eq!(count(&history, Function::Check, Type::Fail), 0, "{:?}", errors(&history));
        let late: Vec<_> = history.iter().filter(|one| is_late(one)).collect();
        let adds: Vec<_> = late.iter().filter(|one| one.f == Function::Add).collect();
        assert!(!adds.is_empty() && adds.len() < late.len(), "{late:?}");
        for add in adds {
            assert_eq!(add.value.error.as_deref(), Some("attachment-released"), "{add:?}");
        }
        let expected = ["killed", "attachment-released"];
        for error in errors(&history).keys() {
            assert!(expected.iter().any(|code| error.ends_with(code)), "{error}");
        }
        lab.is_free("cni").await;
    });
}

#[test]
fn containers_on_the_wire_appear_and_vanish_without_faults() {
    Lab::run(|lab| async move {
        let history = lab.work("gc-probe", async || sleep(Duration::from_secs(10)).await).await;
        is_well_formed(&history);
        println!("{} operations, {:?}", history.len() / 2, errors(&history));
        for f in [Function::Add, Function::Del, Function::Farm] {
            assert!(count(&history, f, Type::Ok) >= 5, "{f:?}");
        }
        assert_eq!(errors(&history), std::collections::BTreeMap::new());
        // Orphans among them.
        lab.is_free("gc-probe").await;
    });
}

#[test]
fn sticky_endpoints_keep_their_addresses_without_faults() {
    Lab::run(|lab| async move {
        let history = lab.work("sticky", async || sleep(Duration::from_secs(5)).await).await;
        is_well_formed(&history);
        println!("{} operations, {:?}", history.len() / 2, errors(&history));
        let mut known = std::collections::BTreeMap::new();
        let mut kept = 0;
        for one in history.iter().filter(|one| one.kind == Type::Ok) {
            let endpoint = one.value.endpoint.clone().unwrap_or_default();
            if one.f == Function::Allocate {
                let grants: Vec<_> =
                    one.value.grants.iter().map(|grant| (grant.id, &grant.address)).collect();
                assert_eq!(grants.len(), 2, "{one:?}");
                let before = known.insert(endpoint, grants.clone());
                assert!(before.is_none_or(|before| before == grants), "{one:?}");
                kept += 1;
            } else if one.value.detail["by"] == "endpoint" {
                known.remove(&endpoint);
            } else if one.value.detail["by"] == "controller" {
                known.retain(|endpoint, _| !endpoint.starts_with("pod/"));
            }
        }
        assert!(kept > 50, "{kept}");
        for error in errors(&history).keys() {
            let expected = ["attachment-released", "not-found", "allocation-changed"];
            assert!(expected.iter().any(|code| error.ends_with(code)), "{error}");
        }
    });
}

#[test]
fn faults_of_nodes_take_hold_and_heal() {
    Lab::run(|lab| async move {
        let (nodes, both) = (&lab.nodes, ["c1".to_owned(), "c2".to_owned()]);
        let [one, _] = &both;
        let one = std::slice::from_ref(one);
        let faults = async || {
            sleep(Duration::from_secs(2)).await;
            let evidence = kill_agents(nodes, &both).await.unwrap();
            assert!(
                evidence.len() == 2 && evidence.iter().all(|text| text.contains("signal: 9")),
                "{evidence:?}"
            );
            assert_eq!(kill_agents(nodes, &both).await.unwrap(), Vec::<String>::new());
            sleep(Duration::from_secs(1)).await;
            assert_eq!(start_agents(nodes, &both).await.unwrap().len(), 2);
            assert_eq!(pause_agents(nodes, one, true).await.unwrap().len(), 1);
            sleep(Duration::from_secs(1)).await;
            assert_eq!(pause_agents(nodes, one, false).await.unwrap().len(), 1);
            sleep(Duration::from_secs(2)).await;
            let lost = lose_nodes(nodes, one).await.unwrap();
            assert!(lost.len() == 1 && nodes[0].losses() == 1, "{lost:?}");
            assert!(nodes[0].namespace("x").await.is_err() && nodes[1].namespace("x").await.is_ok());
            sleep(Duration::from_secs(2)).await;
            assert_eq!(boot_nodes(nodes, one).await.unwrap().len(), 1);
            let server = lab.servers().all;
            let foreign = lab.station.answer_for_free(server.as_ref(), 4).await.unwrap();
            assert_eq!(foreign.len(), 4);
            answers(&lab, foreign[0]).await;
            assert_eq!(lab.station.silence().await.unwrap().len(), 4);
            sleep(Duration::from_secs(1)).await;
        };
        let history = lab.work("gc-probe", faults).await;
        is_well_formed(&history);
        println!("{} operations, {:?}", history.len() / 2, errors(&history));
        lab.is_free("gc-probe").await;
    });
}

/// Waits until an address answers a probe of a node.
async fn answers(lab: &Lab, address: IpAddr) {
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        let mut probe = super::script::inside(lab.nodes[1].netns(), program("ipam-agent"));
        let output = probe.args(["probe", &address.to_string()]).output().await.unwrap();
        if output.status.code() == Some(7) {
            return;
        }
        assert!(Instant::now() < deadline, "{output:?}");
    }
}
