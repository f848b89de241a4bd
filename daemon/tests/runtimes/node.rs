//! A node: namespaces with directories of their own for a runtime, a bridge with our plugin, and an agent.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::IpAddr;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use ipam_api::resource::{Endpoint, EndpointStatus, Resource};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::cgroup::Cgroup;
use super::moment::{Moment, Order, PLUGINS};
use crate::support::ask::{list, put};
use crate::support::held::Held;
use crate::support::{Cluster, programs, until};

/// Debian's programs that the tests run.
const PROGRAMS: [&str; 4] = ["conmon", "containerd", "podman", "runc"];
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Debian's main plugins.
const MAIN_PLUGINS: &str = "/usr/lib/cni";
/// Name of the node, of its network configuration and of its pools.
const NODE: &str = "node-1";
pub(crate) const NETWORK: &str = "lan";
const AGENT_SOCKET: &str = "/run/ipamd/agent.sock";

/// Program of all containers, which does nothing.
pub(crate) const PROGRAM: [&str; 2] = ["sleep", "infinity"];

/// Addresses by container id, as the plugin gets it.
pub(crate) type Addresses = BTreeMap<String, Vec<IpAddr>>;

/// The node and its cluster. The fields are dropped in this order.
pub(crate) struct Node {
    held: Held,
    _cgroup: Cgroup,
    agent: Option<Child>,
    dir: TempDir,
    pub(crate) cluster: Cluster,
}

impl Node {
    /// Makes a cluster with small pools, and a node with an agent.
    pub(crate) async fn make() -> Self {
        for name in PROGRAMS {
            let found = PATH.split(':').any(|dir| Path::new(dir).join(name).exists());
            assert!(found, "{name} is missing; first: cargo xtask test --only packages");
        }
        let cluster = Cluster::up(3).await;
        for (name, cidr, gateway, range) in [
            (NETWORK, "10.99.0.0/24", "10.99.0.1", "10.99.0.10-10.99.0.21"),
            ("lan6", "2001:db8:99::/64", "2001:db8:99::1", "2001:db8:99::10-2001:db8:99::1b"),
        ] {
            put(&cluster.ask(), "subnets", json!({"name": name, "cidr": cidr, "gateway": gateway})).await;
            let pool = json!({"name": name, "subnet": name, "ranges": [range], "cooling_ms": 0});
            put(&cluster.ask(), "pools", pool).await;
        }
        let (dir, cgroup) = (TempDir::new().unwrap(), Cgroup::make());
        furnish(dir.path(), &cluster.urls());
        let root = dir.path().display();
        let setup = [
            format!("hostname {NODE}"),
            "ip link set lo up".to_owned(),
            format!("mount --bind {} /sys/fs/cgroup", cgroup.path().display()),
            format!("mount --bind {root}/opt /opt"),
            format!("mount --bind {root}/cni /etc/cni"),
            "mount -t tmpfs run /run".to_owned(),
            "mount -t tmpfs lib /var/lib".to_owned(),
        ];
        let kinds = ["--net", "--mount", "--uts", "--pid", "--mount-proc"];
        let held = Held::start(&kinds, &setup.join(" && "));
        let mut node = Self { held, _cgroup: cgroup, agent: None, dir, cluster };
        node.start_agent().await;
        node
    }

    /// Starts the agent and waits until it listens. It has the members' network, else all is the node's.
    pub(crate) async fn start_agent(&mut self) {
        let mut command = self.held.inside(&["-m", "-u", "-p"]);
        command.args(["/opt/real/ipam-agent", "serve", "--config", "/opt/agent.toml"]).env_clear();
        self.agent = Some(command.stdin(Stdio::null()).stderr(self.log("agent")).spawn().unwrap());
        until("the agent answers", async || {
            let status = self.plugin("STATUS", &[]);
            if status.status.success() { Ok(()) } else { Err(format!("{status:?}")) }
        })
        .await;
    }

    /// kill -9.
    pub(crate) async fn kill_agent(&mut self) {
        self.kill(&["ipam-agent"]).await;
        self.agent.take().unwrap().wait().unwrap();
    }

    /// Directory of the node that the tests see, too.
    pub(crate) fn opt(&self) -> PathBuf {
        self.dir.path().join("opt")
    }

    /// Root directory of all containers. They mount this machine's /usr.
    pub(crate) fn root_of_containers(&self) -> PathBuf {
        self.dir.path().join("rootfs")
    }

    /// A file that a failure shows.
    pub(crate) fn log(&self, name: &str) -> File {
        let path = self.dir.path().join(format!("{name}.log"));
        File::options().create(true).append(true).open(path).unwrap()
    }

    /// A command on the node.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = self.held.inside(&["-m", "-n", "-u", "-p"]);
        command.args(words).env_clear().env("PATH", PATH).stdin(Stdio::null());
        command.env("CONTAINERS_CONF", "/opt/containers.conf");
        command
    }

    /// Runs a command on the node, in any way that it ends.
    pub(crate) fn output(&self, words: &[&str]) -> Output {
        let output = self.command(words).output().unwrap();
        println!("# {}: {}", words.join(" "), output.status);
        for bytes in [&output.stdout, &output.stderr] {
            println!("{}", String::from_utf8_lossy(bytes).trim_end());
        }
        output
    }

    /// Runs a command on the node, which must succeed; returns its output.
    #[track_caller]
    pub(crate) fn run(&self, words: &[&str]) -> String {
        let output = self.output(words);
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
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

    /// kill -9 for all processes of the node with these names; waits until they have ended.
    pub(crate) async fn kill(&self, names: &[&str]) {
        until(&format!("{names:?} end"), async || {
            let living = self.processes(names);
            for process in &living {
                // One that has just ended is what was wanted.
                let _ = kill_process(Pid::from_raw(*process).unwrap(), Signal::KILL);
            }
            if living.is_empty() { Ok(()) } else { Err(format!("{living:?}")) }
        })
        .await;
    }

    /// Waits until no run of a plugin is left.
    pub(crate) async fn plugins_ended(&self) {
        until("the plugins end", async || {
            let living = self.processes(&PLUGINS);
            if living.is_empty() { Ok(()) } else { Err(format!("{living:?}")) }
        })
        .await;
    }

    /// Processes of the node with these names, as this machine numbers them.
    fn processes(&self, names: &[&str]) -> Vec<i32> {
        let space = |process: &str| fs::read_link(format!("/proc/{process}/ns/pid")).ok();
        let own = space(&self.held.inner().to_string()).unwrap();
        let processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().file_name());
        let mut found = Vec::new();
        for process in processes.filter_map(|name| name.into_string().ok()) {
            let Ok(number) = process.parse() else { continue };
            let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
            if names.contains(&name.trim_end()) && space(&process).as_ref() == Some(&own) {
                found.push(number);
            }
        }
        found
    }

    /// Addresses of `eth0` of a process, as the node numbers it.
    pub(crate) fn configured(&self, process: &str) -> Vec<IpAddr> {
        let show = ["nsenter", "-t", process, "-n", "--", "ip", "-j", "address", "show", "dev", "eth0"];
        let shown: Value = serde_json::from_str(&self.run(&show)).unwrap();
        let addresses = shown[0]["addr_info"].as_array().unwrap().iter();
        let mut addresses: Vec<IpAddr> = addresses
            .filter(|info| info["scope"] == "global")
            .map(|info| info["local"].as_str().unwrap().parse().unwrap())
            .collect();
        addresses.sort();
        addresses
    }

    /// Addresses that the cluster has for containers.
    pub(crate) async fn allocated(&self) -> Addresses {
        let endpoints: Vec<Resource<Endpoint, EndpointStatus>> =
            list(&self.cluster.ask(), "/v1/endpoints").await;
        let mut allocated = Addresses::new();
        for interface in endpoints.into_iter().flat_map(|endpoint| endpoint.status.interfaces) {
            let mut addresses: Vec<IpAddr> =
                interface.addresses.iter().map(|held| held.address.addr()).collect();
            addresses.sort();
            let container = interface.attachment.map(|attachment| attachment.container_id.to_string());
            allocated.insert(container.expect("an attachment"), addresses);
        }
        allocated
    }

    /// Waits until the cluster has exactly the addresses that the live containers have.
    pub(crate) async fn settled(&self, live: &Addresses) {
        until("no address is allocated but those of live containers", async || {
            let allocated = self.allocated().await;
            let lost: Vec<_> = live.iter().filter(|(id, held)| allocated.get(*id) != Some(held)).collect();
            assert!(lost.is_empty(), "the cluster lacks {lost:?} in {allocated:?}");
            if allocated == *live { Ok(()) } else { Err(format!("{allocated:?} instead of {live:?}")) }
        })
        .await;
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        for dir in [self.dir.path().to_owned(), self.opt()] {
            let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
            for log in files.filter(|path| path.extension().is_some_and(|extension| extension == "log")) {
                let text = fs::read_to_string(&log).unwrap();
                let lines: Vec<&str> = text.lines().collect();
                println!("--- {}\n{}", log.display(), lines[lines.len().saturating_sub(60)..].join("\n"));
            }
        }
    }
}

/// Words that run the plugin under test by itself.
pub(crate) fn words_of_plugin<'a>(verb: &'a str, variables: &[&'a str]) -> Vec<&'a str> {
    let run = ["CNI_PATH=/opt/cni/bin", "sh", "-c", "exec /opt/cni/bin/ipam-cni < /opt/network.json"];
    [&["env", verb], variables, &run].concat()
}

/// Puts programs and configurations into the directories of a node.
fn furnish(root: &Path, servers: &[String]) {
    let dirs = ["opt/cni/bin", "opt/orders", "opt/real", "cni/net.d", "rootfs"].map(|dir| root.join(dir));
    dirs.iter().for_each(|dir| fs::create_dir_all(dir).unwrap());
    let [bin, _, real, net, rootfs] = &dirs;
    for program in [programs::ipam_cni(), programs::ipam_agent()] {
        fs::copy(&program, real.join(program.file_name().unwrap())).unwrap();
    }
    for name in ["bin", "lib", "lib64"] {
        symlink(format!("usr/{name}"), rootfs.join(name)).unwrap();
    }
    symlink(Path::new(MAIN_PLUGINS).join("bridge"), real.join("bridge")).unwrap();
    for plugin in PLUGINS {
        fs::write(bin.join(plugin), include_str!("stop.sh")).unwrap();
        fs::set_permissions(bin.join(plugin), fs::Permissions::from_mode(0o755)).unwrap();
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
    let agent = format!(
        "servers = {servers:?}\nnode = {NODE:?}\nsocket = {AGENT_SOCKET:?}\n\
         state_dir = \"/var/lib/ipam-agent\"\n\
         inventory_interval_ms = 100\norphan_grace_ms = 200\nheartbeat_interval_ms = 100\n"
    );
    fs::write(root.join("opt/agent.toml"), agent).unwrap();
    fs::write(root.join("opt/containers.conf"), include_str!("containers.toml")).unwrap();
    fs::write(root.join("opt/containerd.toml"), include_str!("containerd.toml")).unwrap();
}
