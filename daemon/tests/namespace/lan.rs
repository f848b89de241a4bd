//! Hosts on one Ethernet segment: nodes with agents and containers, routers and foreign hosts.

use std::fs::File;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use ipam_api::client::Client;
use ipam_api::reclaim::{GcLine, Tasks};
use ipam_api::resource::Allocation;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::namespace::wire::listener_inside;
use crate::support::ask::{allocations, get, list, put};
use crate::support::held::Held;
use crate::support::{Cluster, programs, until};

const MAIN_PLUGINS: &str = "/usr/lib/cni";
const PORT: u16 = 7440;

/// A segment with its cluster. Pools have 100 addresses, from 10 on.
pub(crate) struct Lan {
    pub(crate) cluster: Cluster,
    switch: Held,
    ports: std::cell::Cell<u32>,
}

impl Lan {
    /// Makes a cluster of three members whose subnets have these probes.
    pub(crate) async fn make(probing: Value) -> Self {
        let timing =
            "heartbeat_ms = 100\nelection_min_ms = 600\nelection_max_ms = 1000\nlease_grace_ms = 500";
        let gc = "[gc]\nnode_grace_ms = 30000";
        let cluster = Cluster::of_with(3, &format!("{timing}\n{gc}")).all_up().await;
        for (name, cidr, gateway, range) in [
            ("lan", "10.99.0.0/24", "10.99.0.1", "10.99.0.10-10.99.0.109"),
            ("lan6", "2001:db8:99::/64", "2001:db8:99::1", "2001:db8:99::10-2001:db8:99::73"),
        ] {
            let subnet = json!({"name": name, "cidr": cidr, "gateway": gateway, "probing": probing});
            put(&cluster.ask(), "subnets", subnet).await;
            let pool = json!({"name": name, "subnet": name, "ranges": [range], "cooling_ms": 0});
            put(&cluster.ask(), "pools", pool).await;
        }
        // Without multicast snooping: neighbor solicitations go to groups that no host has joined by MLD yet.
        let setup = "ip link set lo up && ip link add br0 type bridge mcast_snooping 0 && ip link set br0 up";
        Self { cluster, switch: Held::start(&["--net"], setup), ports: std::cell::Cell::new(0) }
    }

    pub(crate) fn ask(&self) -> Client {
        self.cluster.ask()
    }

    /// Connects a host with `eth0`, this MAC address, and the addresses with this last number.
    pub(crate) fn host(&self, mac: &str, last: u32) -> Host {
        let held = Held::start(&["--net"], "ip link set lo up");
        let port = format!("p{}", self.ports.replace(self.ports.get() + 1));
        let cable = format!(
            "ip link add {port} type veth peer name eth0 netns {} && ip link set {port} master br0 up",
            held.inner()
        );
        run(&self.switch, &cable);
        let host = Host { held, port };
        host.run(&format!(
            "ip link set eth0 address {mac} && ip link set eth0 up && \
             ip address add 10.99.0.{last}/24 dev eth0 && \
             ip address add 2001:db8:99::{last:x}/64 dev eth0 nodad"
        ));
        host
    }

    /// Connects a node, and starts its agent.
    pub(crate) async fn node(&self, name: &str, last: u32) -> Node {
        let host = self.host(&format!("02:00:00:00:00:{last:02x}"), last);
        let dir = TempDir::new().unwrap();
        let bin = dir.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        symlink(programs::ipam_cni(), bin.join("ipam-cni")).unwrap();
        let socket = dir.path().join("agent.sock");
        let config = format!(
            "servers = [\"http://127.0.0.1:{PORT}\"]\nnode = \"{name}\"\nsocket = {socket:?}\n\
             state_dir = {:?}\nheartbeat_interval_ms = 500\ninventory_interval_ms = 500\n\
             orphan_grace_ms = 1000\n",
            dir.path().join("state")
        );
        std::fs::write(dir.path().join("agent.toml"), config).unwrap();
        let mut node =
            Node { relay: None, agent: None, containers: Vec::new(), dir, host, name: name.to_owned() };
        node.reach_servers(&self.cluster);
        node.start_agent().await;
        node
    }

    /// Unplugs a host at the switch, or plugs it in again.
    pub(crate) fn plug(&self, host: &Host, is_up: bool) {
        run(&self.switch, &format!("ip link set {} {}", host.port, if is_up { "up" } else { "down" }));
    }

    /// Allocations of a node, by address.
    pub(crate) async fn held_on(&self, node: &str) -> Vec<Allocation> {
        let all = allocations(&self.ask()).await;
        all.into_iter().filter(|one| one.node.as_ref().is_some_and(|of| of.as_str() == node)).collect()
    }

    /// Waits until other nodes have heard all addresses of a node.
    pub(crate) async fn heard(&self, node: &str) {
        until(&format!("the addresses of {node} answer"), async || {
            let held = self.held_on(node).await;
            let silent: Vec<_> =
                held.iter().filter(|one| one.station.is_none()).map(|one| one.address).collect();
            if held.is_empty() || !silent.is_empty() { Err(format!("silent: {silent:?}")) } else { Ok(()) }
        })
        .await;
    }

    /// Rounds of the garbage collection so far.
    pub(crate) async fn rounds(&self) -> u64 {
        let leader = self.cluster.leader().await;
        let tasks: Tasks = get(&self.cluster.at(leader), "/v1/tasks").await.unwrap();
        tasks.tasks.iter().find(|task| task.name == "silent-nodes").unwrap().runs
    }

    /// Waits for a number of rounds since another one.
    pub(crate) async fn rounds_after(&self, begun: u64, rounds: u64) {
        until("the garbage collection has run", async || match self.rounds().await {
            runs if runs >= begun + rounds => Ok(()),
            runs => Err(format!("{runs} rounds")),
        })
        .await;
    }

    /// Runs a command line of `ipamctl`.
    pub(crate) fn ipamctl(&self, line: &str) -> Output {
        let mut command = Command::new(programs::ipamctl());
        command.env_clear().env("IPAM_SERVERS", self.cluster.urls().join(","));
        command.args(line.split(' ').filter(|word| !word.is_empty())).output().unwrap()
    }

    /// Findings of `ipamctl fsck` of this kind.
    #[track_caller]
    pub(crate) fn fsck(&self, kind: &str) -> Vec<Value> {
        let output = self.ipamctl("fsck -o json");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
        let items = report["items"].as_array().unwrap();
        assert_eq!(output.status.code(), Some(if items.is_empty() { 0 } else { 7 }), "{output:?}");
        items.iter().filter(|one| one["kind"] == kind).cloned().collect()
    }

    /// Suspect allocations.
    pub(crate) async fn suspects(&self) -> Vec<GcLine> {
        list(&self.ask(), "/v1/gc").await
    }
}

/// A host of the segment.
pub(crate) struct Host {
    held: Held,
    port: String,
}

impl Host {
    /// Runs a script on the host; returns its output.
    pub(crate) fn run(&self, script: &str) -> String {
        run(&self.held, script)
    }

    pub(crate) fn netns(&self) -> PathBuf {
        Path::new("/proc").join(self.held.inner().to_string()).join("ns/net")
    }
}

fn run(host: &Held, script: &str) -> String {
    let output = host.inside(&["-n"]).args(["sh", "-ec", script]).output().unwrap();
    assert!(output.status.success(), "{script}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A node: a host with an agent, and containers on macvlan interfaces.
pub(crate) struct Node {
    agent: Option<Child>,
    relay: Option<JoinHandle<()>>,
    containers: Vec<Held>,
    dir: TempDir,
    pub(crate) host: Host,
    name: String,
}

impl Node {
    /// Lets the node reach the first member, at a port of its own loopback.
    pub(crate) fn reach_servers(&mut self, cluster: &Cluster) {
        let server = cluster.members[0].client;
        let listener = listener_inside(&self.host.netns(), SocketAddr::from(([127, 0, 0, 1], PORT)));
        listener.set_nonblocking(true).unwrap();
        let listener = TcpListener::from_std(listener).unwrap();
        self.relay = Some(tokio::spawn(async move {
            // The connections end with this task.
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((mut client, _)) = listener.accept().await {
                connections.spawn(async move {
                    if let Ok(mut server) = TcpStream::connect(server).await {
                        let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                    }
                });
            }
        }));
    }

    /// Cuts the node off from the members; its containers stay on the segment.
    pub(crate) fn lose_servers(&mut self) {
        self.relay.take().unwrap().abort();
    }

    pub(crate) async fn start_agent(&mut self) {
        let mut command = self.host.held.inside(&["-n"]);
        command.arg(programs::ipam_agent()).args(["serve", "--config"]);
        command.arg(self.dir.path().join("agent.toml")).env_clear().env("IPAM_AGENT_LOG", "debug,hyper=info");
        let log = File::options().create(true).append(true).open(self.dir.path().join("log")).unwrap();
        self.agent = Some(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap());
        let socket = self.dir.path().join("agent.sock");
        until("the agent serves its socket", async || {
            let connected = tokio::net::UnixStream::connect(&socket).await;
            connected.map(drop).map_err(|error| error.to_string())
        })
        .await;
    }

    /// Ends the agent and all containers at once.
    pub(crate) fn power_off(&mut self) {
        self.kill_agent();
        self.containers.clear();
    }

    pub(crate) fn kill_agent(&mut self) {
        if let Some(mut agent) = self.agent.take() {
            let _ = agent.kill();
            agent.wait().unwrap();
        }
    }

    /// Starts a container on a macvlan interface of the segment.
    pub(crate) fn add(&mut self) -> Output {
        self.add_with(json!({"type": "macvlan", "master": "eth0"}))
    }

    /// Puts a bridge between the node and the segment, and its addresses with this last number on the bridge.
    pub(crate) fn bridge(&self, last: u32) {
        self.host.run(&format!(
            "ip link add cni0 type bridge mcast_snooping 0 && ip address flush dev eth0 && \
             ip link set eth0 master cni0 && ip link set cni0 up && \
             ip address add 10.99.0.{last}/24 dev cni0 && \
             ip address add 2001:db8:99::{last:x}/64 dev cni0 nodad"
        ));
    }

    /// Starts a container with this main plugin.
    pub(crate) fn add_with(&mut self, main: Value) -> Output {
        // Without duplicate address detection, for whose second the main plugin would wait.
        let setup = "ip link set lo up && echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad";
        let container = Held::start(&["--net"], setup);
        let number = self.containers.len();
        let output = self.plugin("ADD", number, &container, main);
        self.containers.push(container);
        output
    }

    fn plugin(&self, verb: &str, number: usize, container: &Held, main: Value) -> Output {
        let mut config = json!({
            "cniVersion": "1.0.0", "name": "lan",
            "ipam": {
                "type": "ipam-cni", "socket": self.dir.path().join("agent.sock"),
                "ipv4_pools": ["lan"], "ipv6_pools": ["lan6"],
            },
        });
        config.as_object_mut().unwrap().extend(main.as_object().unwrap().clone());
        let main = Path::new(MAIN_PLUGINS).join(main["type"].as_str().unwrap());
        let file = self.dir.path().join(format!("{number}.json"));
        std::fs::write(&file, config.to_string()).unwrap();
        let mut command: Command = self.host.held.inside(&["-n"]);
        command.arg(main).env_clear();
        command.env("CNI_COMMAND", verb).env("CNI_IFNAME", "eth0");
        command.env("CNI_CONTAINERID", format!("{}-{number}", self.name));
        command.env("CNI_NETNS", format!("/proc/{}/ns/net", container.inner()));
        command.env("CNI_PATH", format!("{}:{MAIN_PLUGINS}", self.dir.path().join("bin").display()));
        command.stdin(File::open(file).unwrap()).output().unwrap()
    }

    pub(crate) fn logged(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill_agent();
        if let Some(relay) = self.relay.take() {
            relay.abort();
        }
        if std::thread::panicking() {
            let log = self.logged();
            let lines: Vec<&str> = log.lines().collect();
            println!("--- {}\n{}", self.name, lines[lines.len().saturating_sub(60)..].join("\n"));
        }
    }
}

/// The addresses of an ADD that succeeded.
#[track_caller]
pub(crate) fn addresses(output: &Output) -> Vec<IpAddr> {
    assert!(output.status.success(), "{output:?}");
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let ips = result["ips"].as_array().unwrap().iter().map(|ip| ip["address"].as_str().unwrap());
    ips.map(|address| address.split('/').next().unwrap().parse().unwrap()).collect()
}

/// Code and texts of an ADD that failed.
#[track_caller]
pub(crate) fn failure(output: &Output) -> (u64, String) {
    assert!(!output.status.success(), "{output:?}");
    let error: Value = serde_json::from_slice(&output.stdout).unwrap();
    (error["code"].as_u64().unwrap(), error.to_string())
}
