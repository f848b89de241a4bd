//! A node with containerd, a mini kubelet and an agent.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Child;
use std::sync::Mutex;

use serde_json::{Value, json};

use super::kubelet::Kubelet;
use super::pause;
use crate::support::machine::{AGENT_SOCKET, Machine, link_main_plugin, require};
use crate::support::{programs, until};

/// Capability by which containerd passes the annotations of a pod.
pub(super) const POD_ANNOTATIONS: &str = "io.kubernetes.cri.pod-annotations";
const SOCKET: &str = "/run/containerd/containerd.sock";
/// Directory in which libcni keeps the result of each network.
const CACHED_RESULTS: &str = "/var/lib/cni/results";
/// Directory of the files of network namespaces.
const NAMESPACES: &str = "/run/netns";

/// The node. The fields are dropped in this order.
pub(super) struct Node {
    pub(super) kubelet: Kubelet,
    pub(super) machine: Machine,
    containerd: Mutex<Option<Child>>,
}

impl Node {
    /// Makes a node whose pods get their networks by `plugin`, the only one of its network `lan`. `furnish`
    /// adds to the directories of the machine.
    pub(super) async fn make(
        name: &str,
        servers: &[String],
        plugin: Value,
        furnish: impl FnOnce(&Path),
    ) -> Self {
        require(&["containerd", "runc"]);
        let machine = Machine::make(name, servers, |root| {
            let bin = root.join("opt/cni/bin");
            for main_plugin in ["bridge", "loopback", "macvlan"] {
                link_main_plugin(&bin, main_plugin);
            }
            fs::copy(programs::ipam_cni(), bin.join("ipam-cni")).unwrap();
            fs::copy(programs::multus_stand_in(), bin.join("multus-stand-in")).unwrap();
            fs::copy(programs::mini_kubelet(), root.join("opt/real/mini-kubelet")).unwrap();
            fs::write(root.join("cni/net.d/lan.conflist"), network(&plugin)).unwrap();
            fs::write(root.join("opt/containerd.toml"), include_str!("containerd.toml")).unwrap();
            pause::write_image(&root.join("opt/pause.tar"));
            furnish(root);
        });
        machine.start_agent().await;
        let words = ["/opt/real/mini-kubelet", "--cri", SOCKET];
        let kubelet = Kubelet::start(machine.command(&words));
        let node = Self { kubelet, machine, containerd: Mutex::new(None) };
        node.start_containerd().await;
        node.machine.run(&["ctr", "--namespace", "k8s.io", "images", "import", "/opt/pause.tar"]);
        node
    }

    /// Starts the daemon and waits until it answers.
    pub(super) async fn start_containerd(&self) {
        let words = ["containerd", "--config", "/opt/containerd.toml"];
        let daemon = self.machine.command(&words).stderr(self.machine.log("containerd")).spawn().unwrap();
        assert!(self.containerd.lock().unwrap().replace(daemon).is_none(), "containerd is there");
        until("containerd answers", async || {
            let answer = self.machine.command(&["ctr", "--timeout", "1s", "version"]).output().unwrap();
            if answer.status.success() { Ok(()) } else { Err(format!("{answer:?}")) }
        })
        .await;
    }

    /// kill -9. Its monitors, and the plugins that it runs, go on.
    ///
    /// A kill while a result is written leaves an empty file, and this version of containerd never stops that
    /// sandbox. An administrator removes such files, as `deploy/docs/kubernetes.md` says.
    pub(super) async fn kill_containerd(&self) {
        self.machine.kill(&["containerd"]).await;
        self.containerd.lock().unwrap().take().unwrap().wait().unwrap();
        let remove =
            format!("mkdir -p {CACHED_RESULTS} && find {CACHED_RESULTS} -type f -empty -print -delete");
        self.machine.run(&["sh", "-c", &remove]);
    }

    /// Files of network namespaces.
    pub(super) fn namespaces(&self) -> BTreeSet<String> {
        let names = self.machine.run(&["sh", "-c", &format!("ls {NAMESPACES} 2>/dev/null || :")]);
        names.lines().map(|name| format!("{NAMESPACES}/{name}")).collect()
    }

    /// Routes of a process: destination, gateway and interface of each.
    pub(super) fn routes(&self, process: u32) -> BTreeSet<String> {
        let mut routes = BTreeSet::new();
        for family in ["-4", "-6"] {
            let process = process.to_string();
            let show = ["nsenter", "-t", &process, "-n", "--", "ip", "-j", family, "route", "show"];
            let shown: Vec<Value> = serde_json::from_str(&self.machine.run(&show)).unwrap();
            let text = |route: &Value, key: &str| route[key].as_str().map(str::to_owned);
            routes.extend(shown.iter().filter_map(|route| {
                let [destination, gateway, interface] = ["dst", "gateway", "dev"].map(|key| text(route, key));
                Some(format!("{} via {} dev {}", destination?, gateway?, interface?))
            }));
        }
        routes
    }
}

fn network(plugin: &Value) -> String {
    json!({"cniVersion": "1.0.0", "name": "lan", "plugins": [plugin]}).to_string()
}

/// Section `ipam` of a plugin's configuration on a node, with the agent.
pub(super) fn ipam(node: &str, more: Value) -> Value {
    let mut ipam = json!({"type": "ipam-cni", "node": node, "socket": AGENT_SOCKET});
    ipam.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    ipam
}

/// Configuration of `bridge` that gets the pods' annotations.
pub(super) fn bridge(ipam: Value) -> Value {
    json!({"type": "bridge", "bridge": "br0", "capabilities": {POD_ANNOTATIONS: true}, "ipam": ipam})
}
