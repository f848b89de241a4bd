//! The real node agent, with its own directory.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use ipam_api::agent::{DOCTOR_PATH, DoctorCheck, DoctorReport};
use ipam_api::client::{Call, Client};
use ipam_api::limits::AGENT_INTERVAL_MS_MIN;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{LONG, programs, until};

/// Agent of one node. Its directory outlives the process.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) dir: TempDir,
    process: Option<Child>,
    /// True to run as root without capabilities; systemd's unit leaves CAP_NET_RAW.
    pub(crate) is_unprivileged: bool,
}

impl Agent {
    /// Starts an agent of `node` for these servers, with settings beyond the quick intervals of tests.
    pub(crate) async fn up(servers: &[String], node: &str, more: &str) -> Self {
        let mut agent = Self::of(servers, node, more);
        agent.start();
        agent.serves().await;
        agent
    }

    /// An agent that isn't started.
    pub(crate) fn of(servers: &[String], node: &str, more: &str) -> Self {
        let dir = tempfile::Builder::new().prefix("ipam-agent-").tempdir().unwrap();
        let agent = Self { dir, process: None, is_unprivileged: false };
        let (socket, state) = (agent.socket(), agent.state());
        let mut text =
            format!("servers = {servers:?}\nnode = \"{node}\"\nsocket = {socket:?}\nstate_dir = {state:?}\n");
        for quick in ["heartbeat_interval_ms", "inventory_interval_ms", "orphan_grace_ms"] {
            if !more.contains(quick) {
                text.push_str(&format!("{quick} = {AGENT_INTERVAL_MS_MIN}\n"));
            }
        }
        // At the end: it may have sections.
        text.push_str(more);
        std::fs::write(agent.config(), text).unwrap();
        agent
    }

    pub(crate) fn start(&mut self) {
        let program = programs::ipam_agent();
        self.start_with(&program, &[]);
    }

    /// Starts a test build that is killed at a step of `ipam_agent::testing`.
    pub(crate) fn start_killed_at(&mut self, step: &str) {
        self.start_with(&programs::testing_ipam_agent(), &["--kill-at", step]);
    }

    fn start_with(&mut self, program: &Path, flags: &[&str]) {
        assert!(self.process.is_none(), "the agent is up already");
        let log = File::options().create(true).append(true).open(self.dir.path().join("log")).unwrap();
        let mut command = self.command(program);
        command.arg("serve").args(flags).arg("--config").arg(self.config()).stderr(log);
        self.process = Some(command.spawn().unwrap());
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = match self.is_unprivileged {
            true => Command::new("setpriv"),
            false => Command::new(program),
        };
        if self.is_unprivileged {
            command.args(["--bounding-set", "-all", "--inh-caps", "-all"]).arg(program);
        }
        command.env_clear().env("IPAM_AGENT_LOG", "debug,hyper=info,reqwest=info");
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    /// Waits until the socket accepts connections.
    pub(crate) async fn serves(&self) {
        until("the agent serves its socket", async || {
            let connected = tokio::net::UnixStream::connect(self.socket()).await;
            connected.map(|_| ()).map_err(|error| format!("{error}\n{}", self.logged()))
        })
        .await;
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.as_ref().unwrap().id()
    }

    /// Waits until the process has ended by itself.
    pub(crate) async fn ends(&mut self) -> ExitStatus {
        let logged = self.logged();
        let status = until("the agent ends", async || {
            let process = self.process.as_mut().unwrap();
            process.try_wait().unwrap().ok_or_else(|| logged.clone())
        })
        .await;
        self.process = None;
        status
    }

    /// Kills the process with SIGKILL, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            process.wait().unwrap();
        }
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.dir.path().join("agent.toml")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.path().join("agent.sock")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    pub(crate) fn logged(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// The agent's own report.
    pub(crate) async fn doctor(&self) -> DoctorReport {
        let client = Client::over_socket(&self.socket()).unwrap();
        client.call(Call::get(DOCTOR_PATH).within(LONG)).await.unwrap()
    }

    /// One check of the report.
    pub(crate) async fn check(&self, name: &str) -> DoctorCheck {
        let report = self.doctor().await;
        let shown = format!("{report:?}");
        report.checks.into_iter().find(|check| check.name == name).expect(&shown)
    }

    /// Network configuration that uses the agent and nothing else.
    pub(crate) fn network(&self, pools: &[&str]) -> Value {
        network(&self.socket(), pools)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.kill();
    }
}

fn network(socket: &Path, pools: &[&str]) -> Value {
    let (six, four): (Vec<&str>, Vec<&str>) = pools.iter().partition(|pool| pool.ends_with('6'));
    json!({
        "cniVersion": "1.1.0", "name": "lan", "type": "bridge",
        "ipam": {"type": "ipam-cni", "socket": socket, "ipv4_pools": four, "ipv6_pools": six},
    })
}
