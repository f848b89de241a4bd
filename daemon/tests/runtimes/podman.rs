//! podman, which configures the network itself, and keeps a namespace as a file in `/run/netns`.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use super::moment::{Moment, PLUGINS, before_del, moments};
use super::node::{Addresses, NETWORK, Node, PROGRAM};
use crate::support::until;

const PODMAN: &[&str] = &["podman", "--storage-driver=vfs"];
/// Words that remove a container, before its name.
const REMOVE: [&str; 4] = ["rm", "--force", "--time", "0"];
/// Processes of podman: its commands, and the monitor of a container, which starts one at its end.
const RUNTIME: [&str; 2] = ["podman", "conmon"];

struct Podman(Node);

impl Podman {
    /// Words of a command.
    fn words<'a>(words: &[&'a str]) -> Vec<&'a str> {
        [PODMAN, words].concat()
    }

    fn run(&self, words: &[&str]) -> String {
        self.0.run(&Self::words(words))
    }

    /// Words of the start of a container that does nothing.
    fn start(&self, name: &str) -> Vec<String> {
        let root = self.0.root_of_containers().into_os_string().into_string().unwrap();
        let words = ["run", "--detach", "--name", name, "--network", NETWORK, "--volume", "/usr:/usr:ro"];
        let words = Self::words(&[&words[..], &["--rootfs", &root], &PROGRAM].concat());
        words.into_iter().map(str::to_owned).collect()
    }

    /// Starts a container.
    fn up(&self, name: &str) {
        let words = self.start(name);
        self.0.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
    }

    /// Removes a container. A podman that was killed leaves locks and records that can make one attempt fail.
    async fn remove(&self, name: &str) {
        until(&format!("podman removes {name}"), async || {
            let removal = self.0.output(&Self::words(&[&REMOVE[..], &[name]].concat()));
            let exists = self.0.output(&Self::words(&["container", "exists", name]));
            // 0: it exists; 125: podman can't tell.
            if exists.status.code() == Some(1) { Ok(()) } else { Err(format!("{removal:?}, {exists:?}")) }
        })
        .await;
    }

    fn inspect(&self, name: &str) -> Value {
        let shown: Value = serde_json::from_str(&self.run(&["inspect", name])).unwrap();
        shown[0].clone()
    }

    /// Ids of all containers that podman knows.
    fn known(&self) -> Vec<String> {
        let ids = self.run(&["ps", "--all", "--no-trunc", "--quiet"]);
        ids.lines().map(str::to_owned).collect()
    }

    /// Addresses inside the running containers.
    fn live(&self) -> Addresses {
        let ids = self.run(&["ps", "--no-trunc", "--quiet"]);
        let inside = |id: &str| {
            let process = self.inspect(id)["State"]["Pid"].to_string();
            (id.to_owned(), self.0.configured(&process))
        };
        ids.lines().map(inside).collect()
    }

    /// Files of network namespaces that no running container has.
    fn abandoned(&self) -> BTreeSet<String> {
        let all = self.0.run(&["ls", "/run/netns"]);
        let used: Vec<Value> = self.live().keys().map(|id| self.inspect(id)).collect();
        let used: BTreeSet<&str> = used
            .iter()
            .map(|container| container["NetworkSettings"]["SandboxKey"].as_str().unwrap())
            .collect();
        let all = all.lines().map(|name| format!("/run/netns/{name}"));
        all.filter(|path| !used.contains(path.as_str())).collect()
    }

    /// Kills podman before the DEL of a container, whose process and namespace then end.
    async fn lose(&self, name: &str) {
        let [before, ..] = moments("DEL");
        let namespace = self.inspect(name)["NetworkSettings"]["SandboxKey"].as_str().unwrap().to_owned();
        self.kill_at(before, true, &Self::words(&["stop", "--time", "0", name])).await;
        self.0.remove_namespaces(&BTreeSet::from([namespace]));
    }

    /// Kills podman at `moment` of a command, and the plugins too if `whole`; else they go on without it.
    async fn kill_at(&self, moment: Moment, whole: bool, words: &[&str]) {
        let (order, mut child) = self.0.run_to(moment, words).await;
        self.0.kill(&RUNTIME).await;
        if whole {
            self.0.kill(&PLUGINS).await;
        }
        drop(order);
        child.wait().unwrap();
        self.0.plugins_ended().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn podman_killed_at_any_moment_of_a_del_leaks_nothing() {
    let podman = Podman(Node::make().await);
    podman.up("first");
    podman.up("second");
    let live = podman.live();
    assert!(live.len() == 2 && live.values().all(|addresses| addresses.len() == 2), "{live:?}");
    podman.0.settled(&live).await;
    for (number, moment) in moments("DEL").into_iter().enumerate() {
        for whole in [false, true] {
            let name = format!("killed-{number}-{whole}");
            podman.up(&name);
            let words = Podman::words(&[&REMOVE[..], &[&name]].concat());
            podman.kill_at(moment, whole, &words).await;
            podman.remove(&name).await;
            assert_eq!(podman.known().len(), 2);
            // podman forgets a namespace if it was killed while it removed the container.
            podman.0.remove_namespaces(&podman.abandoned());
            podman.0.settled(&live).await;
        }
    }
    assert_eq!(podman.live(), live);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn podman_killed_at_any_moment_of_an_add_leaks_nothing() {
    let podman = Podman(Node::make().await);
    podman.up("first");
    podman.up("second");
    let live = podman.live();
    for (number, moment) in moments("ADD").into_iter().enumerate() {
        for whole in [false, true] {
            let name = format!("killed-{number}-{whole}");
            let words = podman.start(&name);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            podman.kill_at(moment, whole, &words).await;
            // It knows nothing of a network that the container has, so it calls no DEL.
            podman.remove(&name).await;
            assert_eq!(podman.known().len(), 2);
        }
    }
    // The namespaces are still there, and most have interfaces that answer at their addresses.
    let abandoned = podman.abandoned();
    assert_eq!(abandoned.len(), 8);
    let kept = podman.0.allocated().await;
    assert!(kept.len() > live.len());
    // An inventory that finds a namespace gone has looked at the others, too.
    podman.up("lost");
    podman.lose("lost").await;
    podman.0.settled(&kept).await;
    podman.0.remove_namespaces(&abandoned);
    podman.0.settled(&live).await;
    assert_eq!(podman.live(), live);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn containers_that_are_removed_while_the_plugin_is_missing_lose_their_addresses() {
    let podman = Podman(Node::make().await);
    for name in ["first", "second", "third"] {
        podman.up(name);
    }
    let (plugin, away) = (podman.0.opt().join("cni/bin/ipam-cni"), podman.0.opt().join("ipam-cni"));
    fs::rename(&plugin, &away).unwrap();
    for name in ["first", "second"] {
        podman.remove(name).await;
    }
    assert_eq!(podman.known().len(), 1);
    podman.0.remove_namespaces(&podman.abandoned());
    podman.0.settled(&podman.live()).await;
    fs::rename(&away, &plugin).unwrap();
    podman.up("fourth");
    podman.0.settled(&podman.live()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_del_spares_the_next_run_of_the_same_container() {
    let podman = Podman(Node::make().await);
    podman.up("one");
    let (order, mut child) =
        podman.0.run_to(before_del(), &Podman::words(&["stop", "--time", "0", "one"])).await;
    podman.0.kill(&RUNTIME).await;
    child.wait().unwrap();
    // The plugin's DEL, and the bridge's that waits for it, are all that is left of the first run. Another
    // one ends that run, and the next one gets a namespace of its own.
    podman.run(&["container", "cleanup", "one"]);
    podman.run(&["start", "one"]);
    let live = podman.live();
    podman.0.settled(&live).await;
    drop(order);
    podman.0.plugins_ended().await;
    assert_eq!(podman.0.allocated().await, live);
    assert_eq!(podman.live(), live);
}
