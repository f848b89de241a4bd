//! Hosts of a rack on one Ethernet segment, with one configuration file for all of their agents.
//!
//! Each host has its own network, name, `/run` and state directory. A reboot makes the namespaces anew, with
//! another boot id; the state directory stays.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::ask::put;
use crate::support::held::Held;
use crate::support::{Cluster, programs, until};

/// Namespaces in which the programs of a host run.
const WHERE: [&str; 3] = ["-n", "-m", "-u"];
/// Directory of the agent's state, as the host sees it.
const STATE: &str = "/var/lib/ipam-agent";
/// Section of the interface of most tests.
pub(super) const ETH1: &str =
    "[[interface]]\nname = \"eth1\"\nipv4_pools = [\"lan\"]\nipv6_pools = [\"lan6\"]\n";

/// A segment with its cluster.
pub(super) struct Rack {
    pub(super) cluster: Cluster,
    switch: Held,
    dir: TempDir,
    ports: AtomicU32,
}

impl Rack {
    /// Makes a cluster, and a subnet and pool of each family with this many addresses, without a gateway.
    pub(super) async fn make(members: usize, addresses: u32) -> Self {
        let cluster = Cluster::up(members).await;
        let (fourth, last) = (addresses / 256, addresses % 256);
        for (name, cidr, range) in [
            ("lan", "10.99.0.0/16", format!("10.99.1.0-10.99.{}.{last}", 1 + fourth)),
            ("lan6", "2001:db8:99::/64", format!("2001:db8:99::1:0-2001:db8:99::1:{addresses:x}")),
        ] {
            put(&cluster.ask(), "subnets", json!({"name": name, "cidr": cidr})).await;
            let pool = json!({"name": name, "subnet": name, "ranges": [range], "cooling_ms": 0});
            put(&cluster.ask(), "pools", pool).await;
        }
        let setup = "ip link set lo up && ip link add br0 type bridge mcast_snooping 0 && ip link set br0 up";
        let dir = tempfile::Builder::new().prefix("ipam-rack-").tempdir().unwrap();
        let rack = Self { cluster, switch: Held::start(&["--net"], setup), dir, ports: AtomicU32::new(0) };
        let sockets: Vec<String> =
            rack.cluster.members.iter().map(|one| format!("unix:{}", one.socket().display())).collect();
        rack.configure(&sockets, "", ETH1);
        rack
    }

    /// Writes the file that all agents read at their start.
    pub(super) fn configure(&self, servers: &[String], host: &str, interfaces: &str) {
        self.configure_with(&format!("servers = {servers:?}"), host, interfaces);
    }

    /// Writes the file with more than servers at its top.
    pub(super) fn configure_with(&self, top: &str, host: &str, interfaces: &str) {
        let refresh = if host.contains("refresh_ms") { "" } else { "refresh_ms = 500" };
        let text = format!(
            "{top}\nheartbeat_interval_ms = 5000\n[host]\n{refresh}\nconfirm_ms = 3000\n\
             machine_id_file = \"{STATE}/machine-id\"\n{host}\n{interfaces}"
        );
        fs::write(self.config(), text).unwrap();
    }

    /// Servers of the members, as the agents reach them.
    pub(super) fn sockets(&self) -> Vec<String> {
        self.cluster.members.iter().map(|one| format!("unix:{}", one.socket().display())).collect()
    }

    fn config(&self) -> PathBuf {
        self.dir.path().join("agent.toml")
    }

    /// Connects a host, which runs no agent yet.
    pub(super) fn host(&self, name: &str) -> Host {
        let number = self.ports.fetch_add(1, Ordering::Relaxed);
        let dir = self.dir.path().join(name);
        fs::create_dir_all(dir.join("state")).unwrap();
        fs::write(dir.join("state/machine-id"), format!("{}\n", uuid::Uuid::new_v4().simple())).unwrap();
        let [high, low] = u16::try_from(number).unwrap().to_be_bytes();
        let mac = format!("02:00:00:01:{high:02x}:{low:02x}");
        let mut host = Host { name: name.to_owned(), dir, mac, number, held: None, agent: None };
        host.boot(self);
        host
    }

    /// Runs a script at the switch.
    pub(super) fn at_switch(&self, script: &str) {
        run(self.switch.inside(&["-n"]), script);
    }
}

/// A host of the rack.
pub(super) struct Host {
    pub(super) name: String,
    dir: PathBuf,
    mac: String,
    number: u32,
    held: Option<Held>,
    agent: Option<Child>,
}

impl Host {
    /// Switches the host on: its kernel has nothing but an interface, which is down.
    pub(super) fn boot(&mut self, rack: &Rack) {
        assert!(self.held.is_none(), "{} is on already", self.name);
        let boot_id = self.dir.join("boot_id");
        fs::write(&boot_id, format!("{}\n", uuid::Uuid::new_v4())).unwrap();
        let setup = [
            format!("hostname {}", self.name),
            "mount -t sysfs sys /sys".to_owned(),
            "mount -t tmpfs run /run".to_owned(),
            "mount -t tmpfs lib /var/lib".to_owned(),
            format!("mkdir {STATE}"),
            format!("mount --bind {} {STATE}", self.dir.join("state").display()),
            format!("mount --bind {} /proc/sys/kernel/random/boot_id", boot_id.display()),
            "ip link set lo up".to_owned(),
        ];
        let held = Held::start(&["--net", "--mount", "--uts"], &setup.join(" && "));
        let port = format!("p{}", self.number);
        rack.at_switch(&format!(
            "ip link add {port} type veth peer name eth1 address {} netns {} && \
             ip link set {port} master br0 up",
            self.mac,
            held.inner()
        ));
        self.held = Some(held);
    }

    /// Switches the host off, as a power cut does.
    pub(super) fn off(&mut self, rack: &Rack) {
        self.kill_agent();
        if self.held.take().is_some() {
            // The kernel removes the namespace, and the cable with it, some time later.
            rack.at_switch(&format!("ip link delete p{} 2>/dev/null || true", self.number));
        }
    }

    /// Starts the agent.
    pub(super) fn start_agent(&mut self, rack: &Rack) {
        self.start(rack, &programs::ipam_agent(), &[]);
    }

    /// Starts a test build of the agent that is killed before or after a change.
    pub(super) fn start_agent_killed_at(&mut self, rack: &Rack, point: u32) {
        self.start(rack, &programs::testing_ipam_agent(), &["--kill-at-change", &point.to_string()]);
    }

    fn start(&mut self, rack: &Rack, program: &Path, flags: &[&str]) {
        assert!(self.agent.is_none(), "the agent of {} is up already", self.name);
        let log = File::create(self.dir.join("log")).unwrap();
        let mut command = self.inside(program);
        command.arg("serve").args(flags).arg("--config").arg(rack.config());
        command.env_clear().env("IPAM_AGENT_LOG", "debug,hyper=info,reqwest=info");
        self.agent = Some(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap());
    }

    /// Runs `ipam-agent host` on the host.
    pub(super) fn agent_host(&self, rack: &Rack, words: &[&str]) -> Output {
        let mut command = self.inside(&programs::ipam_agent());
        command.arg("host").args(words).arg("--config").arg(rack.config()).env_clear().output().unwrap()
    }

    fn inside(&self, program: &Path) -> Command {
        let mut command = self.held().inside(&WHERE);
        command.arg(program);
        command
    }

    pub(super) fn held(&self) -> &Held {
        self.held.as_ref().unwrap()
    }

    pub(super) fn kill_agent(&mut self) {
        if let Some(mut agent) = self.agent.take() {
            let _ = agent.kill();
            agent.wait().unwrap();
        }
    }

    /// Exit status of an agent that ended by itself.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        let ended = self.agent.as_mut()?.try_wait().unwrap();
        if ended.is_some() {
            self.agent = None;
        }
        ended
    }

    /// Runs a script on the host; returns its output.
    pub(super) fn run(&self, script: &str) -> String {
        run(self.held().inside(&WHERE), script)
    }

    pub(super) fn state(&self) -> PathBuf {
        self.dir.join("state")
    }

    pub(super) fn logged(&self) -> String {
        fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }

    /// Global addresses of an interface, with their prefixes.
    pub(super) fn addresses(&self, device: &str) -> BTreeSet<String> {
        let shown = self.run(&format!("ip -j address show dev {device} scope global"));
        let shown: Value = serde_json::from_str(&shown).unwrap();
        let all = shown.as_array().unwrap().iter().filter_map(|link| link["addr_info"].as_array()).flatten();
        // Addresses of another scope are empty objects.
        all.filter_map(|one| Some(format!("{}/{}", one["local"].as_str()?, one["prefixlen"]))).collect()
    }

    /// Waits until an interface has this many global addresses; returns them.
    pub(super) async fn has(&self, device: &str, count: usize) -> BTreeSet<String> {
        until(&format!("{} has {count} addresses", self.name), async || {
            let addresses = self.addresses(device);
            if addresses.len() == count {
                Ok(addresses)
            } else {
                Err(format!("{addresses:?}\n{}", self.tail()))
            }
        })
        .await
    }

    /// State of the configuration, as the agent wrote it.
    pub(super) fn status(&self) -> Value {
        let text = fs::read_to_string(self.state().join("host-status.json")).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Waits for a state of the configuration.
    pub(super) async fn is(&self, state: &str) -> Value {
        until(&format!("the configuration of {} is {state}", self.name), async || {
            let status = self.status();
            if status["state"] == state { Ok(status) } else { Err(format!("{status}\n{}", self.tail())) }
        })
        .await
    }

    /// Waits until a server has answered since the start of the agent, and its addresses are confirmed.
    pub(super) async fn is_served(&self) {
        until(&format!("{} has its addresses from a server", self.name), async || {
            let status = self.status();
            let is_served = status["state"] == "applied" && status["source"] == "server";
            if is_served { Ok(()) } else { Err(format!("{status}\n{}", self.tail())) }
        })
        .await;
    }

    /// Forgets the state that an earlier agent wrote.
    pub(super) fn forget_status(&self) {
        let _ = fs::remove_file(self.state().join("host-status.json"));
    }

    fn tail(&self) -> String {
        let log = self.logged();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.kill_agent();
        if std::thread::panicking() {
            println!("--- {}\n{}", self.name, self.tail());
        }
    }
}

fn run(mut inside: Command, script: &str) -> String {
    let output = inside.args(["sh", "-ec", script]).output().unwrap();
    assert!(output.status.success(), "{script}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}
