//! containerd, driven by `ctr`, which calls ADD for a container's process and never a DEL. The namespace is
//! that of the process, and ends with it.

use std::fs;
use std::process::Child;

use serde_json::{Value, json};

use super::moment::{Moment, PLUGINS, moments};
use super::node::{Addresses, Node, PROGRAM};
use crate::support::until;

/// Part of the container id that `ctr` puts before its own.
const NAMESPACE: &str = "default";
/// Monitor of a container, by the first 15 letters of its name, all that the kernel keeps.
const SHIM: &str = "containerd-shim";

struct Containerd {
    node: Node,
    daemon: Child,
}

impl Containerd {
    async fn make() -> Self {
        let node = Node::make().await;
        let daemon = start(&node).await;
        Self { node, daemon }
    }

    /// kill -9 for the daemon, and a new one.
    async fn restart(&mut self) {
        self.node.kill(&["containerd"]).await;
        self.daemon.wait().unwrap();
        self.daemon = start(&self.node).await;
    }

    /// Starts a container that does nothing, until `moment` if there is one.
    fn words(&self, name: &str) -> [String; 7] {
        let spec = self.node.opt().join(format!("{name}.json"));
        fs::write(&spec, self.spec(name).to_string()).unwrap();
        let spec = format!("/opt/{name}.json");
        ["ctr", "run", "--detach", "--cni", "--config", &spec, name].map(str::to_owned)
    }

    fn up(&self, name: &str) {
        self.node.run(&self.words(name).each_ref().map(String::as_str));
    }

    fn spec(&self, name: &str) -> Value {
        let namespaces = ["pid", "network", "ipc", "uts", "mount"].map(|kind| json!({"type": kind}));
        json!({
            "ociVersion": "1.0.2",
            "process": {
                "user": {"uid": 0, "gid": 0}, "args": PROGRAM, "cwd": "/", "env": ["PATH=/bin"],
            },
            "root": {"path": self.node.root_of_containers(), "readonly": true},
            "mounts": [
                {"destination": "/proc", "type": "proc", "source": "proc"},
                {"destination": "/usr", "type": "bind", "source": "/usr", "options": ["rbind", "ro"]},
                {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
            ],
            "linux": {"namespaces": namespaces, "cgroupsPath": format!("/{NAMESPACE}/{name}")},
        })
    }

    /// Removes a container in any state. No DEL is called.
    async fn remove(&self, name: &str) {
        self.node.output(&["ctr", "task", "rm", "--force", name]);
        self.node.output(&["ctr", "container", "rm", name]);
        let known = self.node.run(&["ctr", "container", "ls", "--quiet"]);
        assert!(!known.lines().any(|line| line == name), "{known}");
    }

    /// Names and processes of the running containers.
    fn running(&self) -> Vec<(String, String)> {
        let tasks = self.node.run(&["ctr", "task", "ls"]);
        let tasks = tasks.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
        let running = tasks.filter(|task| task[2] == "RUNNING");
        running.map(|task| (task[0].to_owned(), task[1].to_owned())).collect()
    }

    /// Addresses inside the running containers.
    fn live(&self) -> Addresses {
        let inside = |(name, process): (String, String)| {
            (format!("{NAMESPACE}-{name}"), self.node.configured(&process))
        };
        self.running().into_iter().map(inside).collect()
    }

    /// Kills `ctr` and the daemon at `moment` of a start, and the plugins too if `whole`.
    async fn kill_at(&mut self, moment: Moment, whole: bool, name: &str) {
        let words = self.words(name);
        let (order, mut child) = self.node.run_to(moment, &words.each_ref().map(String::as_str)).await;
        self.node.kill(&["ctr", "containerd"]).await;
        if whole {
            self.node.kill(&PLUGINS).await;
        }
        drop(order);
        child.wait().unwrap();
        self.node.plugins_ended().await;
        self.restart().await;
    }
}

pub(super) async fn start(node: &Node) -> Child {
    let words = ["containerd", "--config", "/opt/containerd.toml"];
    let daemon = node.command(&words).stderr(node.log("containerd")).spawn().unwrap();
    until("containerd answers", async || {
        let answer = node.command(&["ctr", "--timeout", "1s", "version"]).output().unwrap();
        if answer.status.success() { Ok(()) } else { Err(format!("{answer:?}")) }
    })
    .await;
    daemon
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn containers_that_containerd_removes_without_a_del_lose_their_addresses() {
    let mut containerd = Containerd::make().await;
    for name in ["removed", "shot", "kept"] {
        containerd.up(name);
    }
    let live = containerd.live();
    assert!(live.len() == 3 && live.values().all(|addresses| addresses.len() == 2), "{live:?}");
    containerd.node.settled(&live).await;
    containerd.remove("removed").await;
    let live = containerd.live();
    containerd.node.settled(&live).await;
    // The agent knows from its journal what was attached before it was killed.
    containerd.node.kill_agent().await;
    containerd.remove("shot").await;
    containerd.restart().await;
    containerd.node.start_agent().await;
    let live = containerd.live();
    assert_eq!(live.len(), 1);
    containerd.node.settled(&live).await;
    let kept = containerd.running();
    containerd.node.kill(&[SHIM]).await;
    // containerd may have ended it when it missed the monitor.
    containerd.node.output(&["sh", "-c", &format!("kill -9 {}", kept[0].1)]);
    containerd.remove("kept").await;
    containerd.node.settled(&Addresses::new()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn containerd_killed_at_any_moment_of_an_add_leaks_nothing() {
    let mut containerd = Containerd::make().await;
    containerd.up("kept");
    let live = containerd.live();
    for (number, moment) in moments("ADD").into_iter().enumerate() {
        for whole in [false, true] {
            let name = format!("killed-{number}-{whole}");
            containerd.kill_at(moment, whole, &name).await;
            containerd.remove(&name).await;
            containerd.node.settled(&live).await;
        }
    }
    assert_eq!(containerd.live(), live);
}
