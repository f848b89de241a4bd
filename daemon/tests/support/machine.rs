//! A machine of a cluster's node: namespaces with directories of their own for a runtime, and an agent.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::net::IpAddr;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::cgroup::Cgroup;
use super::held::Held;
use super::{programs, until};

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Debian's main plugins.
const MAIN_PLUGINS: &str = "/usr/lib/cni";
/// Socket of the agent, as the machine sees it.
pub(crate) const AGENT_SOCKET: &str = "/run/ipamd/agent.sock";

/// The machine. The fields are dropped in this order.
pub(crate) struct Machine {
    held: Held,
    _cgroup: Cgroup,
    agent: Mutex<Option<Child>>,
    dir: TempDir,
}

impl Machine {
    /// Makes a machine with an agent of `node`, which isn't started. `furnish` adds to its directories: `opt`
    /// is `/opt`, and `cni` is `/etc/cni`.
    pub(crate) fn make(node: &str, servers: &[String], furnish: impl FnOnce(&Path)) -> Self {
        let (dir, cgroup) = (TempDir::new().unwrap(), Cgroup::make());
        for made in ["opt/cni/bin", "opt/real", "cni/net.d"] {
            fs::create_dir_all(dir.path().join(made)).unwrap();
        }
        let real = dir.path().join("opt/real");
        for program in [programs::ipam_cni(), programs::ipam_agent()] {
            fs::copy(&program, real.join(program.file_name().unwrap())).unwrap();
        }
        fs::write(dir.path().join("opt/agent.toml"), agent_config(node, servers)).unwrap();
        let ipam = json!({"type": "ipam-cni", "node": node, "socket": AGENT_SOCKET});
        let status = json!({"cniVersion": "1.1.0", "name": "status", "ipam": ipam});
        fs::write(dir.path().join("opt/status.json"), status.to_string()).unwrap();
        furnish(dir.path());
        let held = Held::machine(node, dir.path(), &cgroup);
        Self { held, _cgroup: cgroup, agent: Mutex::new(None), dir }
    }

    /// Starts the agent and waits until it serves. It has the members' network, else all is the machine's.
    pub(crate) async fn start_agent(&self) {
        let mut command = self.held.inside(&["-m", "-u", "-p"]);
        command.args(["/opt/real/ipam-agent", "serve", "--config", "/opt/agent.toml"]).env_clear();
        let agent = command.stdin(Stdio::null()).stderr(self.log("agent")).spawn().unwrap();
        assert!(self.agent.lock().unwrap().replace(agent).is_none(), "an agent is there");
        until("the agent answers", async || {
            let status = ["env", "CNI_COMMAND=STATUS", "CNI_PATH=/opt/cni/bin", "sh", "-c"];
            let run = "exec /opt/real/ipam-cni < /opt/status.json";
            let status = self.command(&[&status[..], &[run]].concat()).output().unwrap();
            if status.status.success() { Ok(()) } else { Err(format!("{status:?}")) }
        })
        .await;
    }

    /// kill -9.
    pub(crate) async fn kill_agent(&self) {
        self.kill(&["ipam-agent"]).await;
        self.agent.lock().unwrap().take().unwrap().wait().unwrap();
    }

    /// Directory that is `/opt` on the machine.
    pub(crate) fn opt(&self) -> PathBuf {
        self.dir.path().join("opt")
    }

    /// Directory of the machine's own files.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
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

    /// Processes of the node with these names, as this machine numbers them.
    pub(crate) fn processes(&self, names: &[&str]) -> Vec<i32> {
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
        self.configured_on(process, "eth0")
    }

    /// Addresses of an interface of a process.
    pub(crate) fn configured_on(&self, process: &str, interface: &str) -> Vec<IpAddr> {
        let show = ["nsenter", "-t", process, "-n", "--", "ip", "-j", "address", "show", "dev", interface];
        let shown: Value = serde_json::from_str(&self.run(&show)).unwrap();
        let addresses = shown[0]["addr_info"].as_array().unwrap().iter();
        let mut addresses: Vec<IpAddr> = addresses
            .filter(|info| info["scope"] == "global")
            .map(|info| info["local"].as_str().unwrap().parse().unwrap())
            .collect();
        addresses.sort();
        addresses
    }

    /// Removes files of network namespaces, as an administrator would. A runtime that was killed may have
    /// left one that is not mounted.
    pub(crate) fn remove_namespaces(&self, namespaces: &BTreeSet<String>) {
        for path in namespaces {
            self.output(&["umount", path]);
            self.run(&["rm", path]);
        }
    }
}

impl Drop for Machine {
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

/// Settings of the agent, with quick intervals.
fn agent_config(node: &str, servers: &[String]) -> String {
    format!(
        "servers = {servers:?}\nnode = {node:?}\nsocket = {AGENT_SOCKET:?}\n\
         state_dir = \"/var/lib/ipam-agent\"\n\
         inventory_interval_ms = 100\norphan_grace_ms = 200\nheartbeat_interval_ms = 100\n"
    )
}

/// Puts a main plugin of Debian into a directory.
pub(crate) fn link_main_plugin(dir: &Path, name: &str) {
    symlink(Path::new(MAIN_PLUGINS).join(name), dir.join(name)).unwrap();
}

/// Writes a script that can be run.
pub(crate) fn write_script(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Fails with a sentence if a program of Debian is missing.
pub(crate) fn require(programs: &[&str]) {
    for name in programs {
        let found = PATH.split(':').any(|dir| Path::new(dir).join(name).exists());
        assert!(found, "{name} is missing; first: cargo xtask test --only packages");
    }
}
