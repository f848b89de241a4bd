//! A node: a machine with a runtime, a bridge with our plugin, and an agent.

use std::fs;
use std::ops::Deref;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Output};

use serde_json::json;

use super::moment::{Moment, Order, PLUGINS};
use crate::support::ask::put;
use crate::support::live;
use crate::support::machine::{AGENT_SOCKET, Machine, link_main_plugin, require, write_script};
use crate::support::{Cluster, until};

pub(crate) use crate::support::live::Addresses;

/// Name of the node, of its network configuration and of its pools.
const NODE: &str = "node-1";
pub(crate) const NETWORK: &str = "lan";

/// Program of all containers, which does nothing.
pub(crate) const PROGRAM: [&str; 2] = ["sleep", "infinity"];

/// The node and its cluster. The fields are dropped in this order.
pub(crate) struct Node {
    machine: Machine,
    pub(crate) cluster: Cluster,
}

impl Deref for Node {
    type Target = Machine;

    fn deref(&self) -> &Machine {
        &self.machine
    }
}

impl Node {
    /// Makes a cluster with small pools, and a node with an agent.
    pub(crate) async fn make() -> Self {
        require(&["conmon", "containerd", "podman", "runc"]);
        let cluster = Cluster::up(3).await;
        for (name, cidr, gateway, range) in [
            (NETWORK, "10.99.0.0/24", "10.99.0.1", "10.99.0.10-10.99.0.21"),
            ("lan6", "2001:db8:99::/64", "2001:db8:99::1", "2001:db8:99::10-2001:db8:99::1b"),
        ] {
            put(&cluster.ask(), "subnets", json!({"name": name, "cidr": cidr, "gateway": gateway})).await;
            let pool = json!({"name": name, "subnet": name, "ranges": [range], "cooling_ms": 0});
            put(&cluster.ask(), "pools", pool).await;
        }
        let machine = Machine::make(NODE, &cluster.urls(), furnish);
        machine.start_agent().await;
        Self { machine, cluster }
    }

    /// Root directory of all containers. They mount this machine's /usr.
    pub(crate) fn root_of_containers(&self) -> PathBuf {
        self.dir().join("rootfs")
    }

    /// Runs a command until it, or a process that it started, reaches `moment`.
    pub(crate) async fn run_to(&self, moment: Moment, words: &[&str]) -> (Order, Child) {
        println!("# {} … until {moment:?}", words.join(" "));
        let order = moment.order(&self.opt().join("orders"));
        let (log, copy) = (self.log("stopped"), self.log("stopped"));
        let child = self.command(words).stdout(log).stderr(copy).spawn().unwrap();
        until("the run stops", async || if order.is_reached() { Ok(()) } else { Err(String::new()) }).await;
        (order, child)
    }

    /// Runs the plugin under test by itself, with these variables.
    pub(crate) fn plugin(&self, verb: &str, variables: &[&str]) -> Output {
        self.output(&words_of_plugin(&format!("CNI_COMMAND={verb}"), variables))
    }

    /// Waits until no run of a plugin is left.
    pub(crate) async fn plugins_ended(&self) {
        until("the plugins end", async || {
            let living = self.processes(&PLUGINS);
            if living.is_empty() { Ok(()) } else { Err(format!("{living:?}")) }
        })
        .await;
    }

    /// Addresses that the cluster has for containers.
    pub(crate) async fn allocated(&self) -> Addresses {
        live::allocated(&self.cluster).await
    }

    /// Waits until the cluster has exactly the addresses that the live containers have.
    pub(crate) async fn settled(&self, live: &Addresses) {
        live::settled(&self.cluster, live).await;
    }
}

/// Words that run the plugin under test by itself.
pub(crate) fn words_of_plugin<'a>(verb: &'a str, variables: &[&'a str]) -> Vec<&'a str> {
    let run = ["CNI_PATH=/opt/cni/bin", "sh", "-c", "exec /opt/cni/bin/ipam-cni < /opt/network.json"];
    [&["env", verb], variables, &run].concat()
}

/// Puts configurations and the wrappers of the plugins into the directories of a node.
fn furnish(root: &Path) {
    let dirs = ["opt/cni/bin", "opt/orders", "opt/real", "cni/net.d", "rootfs"].map(|dir| root.join(dir));
    dirs.iter().for_each(|dir| fs::create_dir_all(dir).unwrap());
    let [bin, _, real, net, rootfs] = &dirs;
    for name in ["bin", "lib", "lib64"] {
        symlink(format!("usr/{name}"), rootfs.join(name)).unwrap();
    }
    link_main_plugin(real, "bridge");
    for plugin in PLUGINS {
        write_script(&bin.join(plugin), include_str!("stop.sh"));
    }
    let ipam = json!({
        "type": "ipam-cni", "node": NODE, "socket": AGENT_SOCKET,
        "ipv4_pools": [NETWORK], "ipv6_pools": ["lan6"],
    });
    let mut bridge = json!({"type": "bridge", "bridge": "br0", "isDefaultGateway": true, "ipam": ipam});
    let network = json!({"cniVersion": "1.0.0", "name": NETWORK, "plugins": [&bridge]});
    fs::write(net.join("lan.conflist"), network.to_string()).unwrap();
    bridge["cniVersion"] = "1.1.0".into();
    bridge["name"] = NETWORK.into();
    fs::write(root.join("opt/network.json"), bridge.to_string()).unwrap();
    fs::write(root.join("opt/containers.conf"), include_str!("containers.toml")).unwrap();
    fs::write(root.join("opt/containerd.toml"), include_str!("containerd.toml")).unwrap();
}
