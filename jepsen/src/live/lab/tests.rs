//! Each kind of fault, injected and healed under load.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ipam_api::client::{Call, Client};
use serde_json::json;
use tokio::time::sleep;

use super::{Lab, Plan, Programs};
use crate::nemesis::{Change, Corruption, Cost, Cut, Fault, Kind, Link, Moment, System};

/// Environment variable of the test process in a mount namespace of its own.
const INSIDE: &str = "IPAM_JEPSEN_TEST_INSIDE";
/// Time limit of one acknowledged write.
const WRITE: Duration = Duration::from_secs(20);

/// Executes one test again in a mount namespace of its own; returns true inside.
fn is_inside(name: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let test = std::env::current_exe().unwrap();
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "--"]).arg(test);
    command.args(["--exact", &format!("live::lab::tests::{name}"), "--nocapture"]).env(INSIDE, "1");
    let output = command.output().unwrap();
    println!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success());
    false
}

fn programs() -> Programs {
    let dir = match std::env::var_os("IPAM_JEPSEN_BIN_DIR") {
        Some(dir) => PathBuf::from(dir),
        None => std::env::current_exe().unwrap().ancestors().nth(2).unwrap().to_owned(),
    };
    Programs::in_dir(&dir).unwrap()
}

/// Lab with clients that write.
struct Scene {
    lab: Lab,
    written: Arc<AtomicU64>,
    clients: Option<tokio::runtime::Runtime>,
    _dir: tempfile::TempDir,
}

impl Drop for Scene {
    fn drop(&mut self) {
        if let Some(clients) = self.clients.take() {
            clients.shutdown_background();
        }
    }
}

impl Scene {
    async fn start(members: usize, is_secure: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let plan = Plan {
            members,
            is_secure,
            seed: 1,
            test_options: Vec::new(),
            programs: programs(),
            dir: dir.path().to_owned(),
        };
        let begun = Instant::now();
        let lab = Lab::start(plan).await.unwrap();
        println!("founded after {:?}", begun.elapsed());
        let admin = lab.administrator().unwrap();
        for (plural, body) in [
            ("subnets", json!({"name": "lab", "cidr": "10.9.0.0/16", "gateway": "10.9.0.1"})),
            ("pools", json!({"name": "lab", "subnet": "lab", "cooling_ms": 0})),
        ] {
            admin.send(Call::put(format!("/v1/{plural}/lab")).json(&body).unwrap()).await.unwrap();
        }
        let clients = lab.host("x1").unwrap().runtime(1).unwrap();
        let written = Arc::new(AtomicU64::new(0));
        for number in 0..4 {
            let (client, written) = (lab.servers("x1").all().unwrap(), Arc::clone(&written));
            clients.spawn(work(client, number, written));
        }
        let scene = Self { lab, written, clients: Some(clients), _dir: dir };
        scene.goes_on("the founding").await;
        scene
    }

    /// Waits for more acknowledged writes.
    async fn goes_on(&self, after: &str) {
        let (before, begun) = (self.written.load(Ordering::Relaxed), Instant::now());
        while self.written.load(Ordering::Relaxed) < before + 20 {
            assert!(begun.elapsed() < WRITE, "nothing is written after {after}");
            sleep(Duration::from_millis(5)).await;
        }
    }

    async fn inject(&mut self, kind: Kind) -> Fault {
        // The first answer to an expensive request takes its time.
        let lasts_ms = if matches!(kind, Kind::Costly { .. }) { 1_500 } else { 300 };
        let fault = Fault { nemesis: "test".to_owned(), lasts_ms, kind };
        let begun = Instant::now();
        let evidence = self.lab.inject(&fault).await.unwrap();
        println!("inject {:?} in {:?}: {evidence:?}", fault.kind, begun.elapsed());
        assert!(!evidence.is_empty(), "{fault:?} didn't take hold");
        fault
    }

    async fn heal(&mut self, fault: &Fault) {
        let begun = Instant::now();
        let evidence = self.lab.heal(fault).await.unwrap();
        println!("heal in {:?}: {evidence:?}", begun.elapsed());
    }

    /// Injects a fault and heals it; all members run and the cluster works then.
    async fn suffers(&mut self, kind: Kind) {
        let fault = self.inject(kind).await;
        sleep(Duration::from_millis(fault.lasts_ms)).await;
        self.heal(&fault).await;
        self.goes_on(&format!("{:?}", fault.kind)).await;
        let view = self.lab.view().await;
        assert_eq!(view.running, view.members, "{fault:?}");
        assert_eq!(view.healthy, view.members, "{fault:?}");
    }

    /// All ends are explained by faults, and no log has complaints.
    fn is_clean(&mut self) {
        let exits = self.lab.exits(0);
        assert!(!exits.is_empty());
        for exit in exits {
            let is_fine = exit.is_expected && exit.complaints.is_empty();
            assert!(is_fine, "{exit:?}{}", self.lab.messages(&exit.process));
        }
    }
}

/// Allocates and releases without an end.
async fn work(client: Client, number: u8, written: Arc<AtomicU64>) {
    for round in 0_u64.. {
        let name = format!("w{number}-{round}");
        let body = json!({
            "endpoint": {"kind": "host", "name": name},
            "interfaces": [{"name": "eth0", "ipv4_pools": ["lab"]}],
        });
        let call = Call::post("/v1/allocations").json(&body).unwrap().within(Duration::from_secs(2));
        if client.send(call).await.is_ok() {
            written.fetch_add(1, Ordering::Relaxed);
        }
        let path = format!("/v1/endpoints/host/default/default/{name}");
        let _released = client.send(Call::delete(path).within(Duration::from_secs(2))).await;
    }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_of_processes_and_of_the_network_come_and_go() {
    if !is_inside("faults_of_processes_and_of_the_network_come_and_go") {
        return;
    }
    let mut scene = Scene::start(3, false).await;
    let isolated = Link::both("n1", "n2").into_iter().chain(Link::both("n1", "n3")).collect();
    scene.suffers(Kind::Partition { links: isolated }).await;
    let hosts = names(&["n2", "x1"]);
    scene
        .suffers(Kind::Packets {
            hosts,
            delay_ms: 10,
            jitter_ms: 5,
            loss_percent: 5,
            duplicate_percent: 5,
            reorder_percent: 5,
            corrupt_percent: 2,
        })
        .await;
    scene.suffers(Kind::Kill { members: names(&["n1", "n2", "n3"]) }).await;
    scene.suffers(Kind::Pause { members: names(&["n1", "n2"]) }).await;
    scene.suffers(Kind::Clock { members: names(&["n1", "n2"]), shift_ms: -600_000, drift_ppm: 500 }).await;
    scene.suffers(Kind::Cpu { members: names(&["n1", "n3"]), percent: 10 }).await;
    let leader = scene.lab.view().await.leader.unwrap();
    let to = names(&["n1", "n2"]).into_iter().find(|name| *name != leader).unwrap();
    scene.suffers(Kind::TransferLeader { to: to.clone() }).await;
    assert_eq!(scene.lab.view().await.leader, Some(to));
    // A member that is paused can be killed.
    let paused = scene.inject(Kind::Pause { members: names(&["n2"]) }).await;
    let killed = scene.inject(Kind::Kill { members: names(&["n2", "n3"]) }).await;
    assert_eq!(scene.lab.view().await.running, ["n1"]);
    scene.heal(&paused).await;
    assert_eq!(scene.lab.view().await.running, ["n1"]);
    scene.heal(&killed).await;
    for cost in [Cost::Transactions, Cost::Reads, Cost::DryRuns, Cost::Streams] {
        scene.suffers(Kind::Costly { cost, clients: 2 }).await;
    }
    scene.suffers(Kind::Restart { members: names(&["n1", "n2", "n3"]) }).await;
    scene.is_clean();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_of_disks_come_and_go() {
    if !is_inside("faults_of_disks_come_and_go") {
        return;
    }
    let mut scene = Scene::start(3, false).await;
    for (members, cut, moment) in [
        (&["n1"][..], Cut::Hard, Moment::Now),
        (&["n1", "n2"], Cut::Journal, Moment::Snapshot),
        (&["n1", "n2", "n3"], Cut::Flushed, Moment::Starting),
        (&["n1", "n2", "n3"], Cut::Hard, Moment::Starting),
    ] {
        scene.suffers(Kind::Power { members: names(members), cut, moment }).await;
    }
    scene.suffers(Kind::FullDisk { members: names(&["n1", "n2"]) }).await;
    scene.suffers(Kind::FailingDisk { members: names(&["n2", "n3"]) }).await;
    scene.suffers(Kind::SlowDisk { members: names(&["n1", "n2", "n3"]), fsync_ms: 40 }).await;
    scene.suffers(Kind::StalledDisk { members: names(&["n1", "n3"]) }).await;
    // A member whose disk is frozen can be killed.
    let frozen = scene.inject(Kind::StalledDisk { members: names(&["n3"]) }).await;
    scene.goes_on("a frozen disk").await;
    let killed = scene.inject(Kind::Kill { members: names(&["n3"]) }).await;
    scene.heal(&killed).await;
    scene.heal(&frozen).await;
    scene.is_clean();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_that_lost_data_return_and_the_cluster_is_restored() {
    if !is_inside("members_that_lost_data_return_and_the_cluster_is_restored") {
        return;
    }
    let mut scene = Scene::start(3, true).await;
    scene.suffers(Kind::Wipe { members: names(&["n2"]) }).await;
    for corruption in
        [Corruption::LogFlip, Corruption::LogTruncate, Corruption::SnapshotFlip, Corruption::RowsFlip]
    {
        scene.suffers(Kind::Corrupt { members: names(&["n3"]), corruption }).await;
    }
    scene.suffers(Kind::Restore).await;
    scene.suffers(Kind::Upgrade { members: names(&["n1", "n2", "n3"]) }).await;
    scene.suffers(Kind::Membership { change: Change::Add }).await;
    scene.suffers(Kind::Membership { change: Change::Remove { member: "n1".to_owned() } }).await;
    scene.suffers(Kind::Membership { change: Change::Replace { member: "n4".to_owned() } }).await;
    scene.suffers(Kind::Restore).await;
    scene.is_clean();
}
