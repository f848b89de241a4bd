//! Agent of a node: a real process on the node's host, with a boot id of its own.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::net::UnixStream;
use tokio::process::Child;
use tokio::time::{Instant, sleep};

use super::agent_files::AgentFiles;
use super::script::inside;
use super::settings::NodeSettings;
use crate::live::boot_id::{self, WITH_BOOT_ID};
use crate::live::lab::mark;
use crate::live::log;

/// Time limit for the agent to serve its socket.
const STARTING: Duration = Duration::from_secs(20);
/// Pause between two checks of the socket.
const LOOK: Duration = Duration::from_millis(10);
/// Name of the log.
pub(super) const LOG: &str = "agent.log";

/// Agent that may or may not run. Its files outlive it.
#[derive(Debug)]
pub(super) struct Agent {
    settings: NodeSettings,
    files: AgentFiles,
    process: Option<Child>,
}

impl Agent {
    /// Writes the configuration of an agent.
    pub(super) fn new(settings: NodeSettings) -> Result<Self> {
        let files = AgentFiles(settings.dir.clone());
        let agent = Self { settings, files, process: None };
        let NodeSettings { name, servers, ca_file, token_file, more, .. } = &agent.settings;
        let mut lines = String::new();
        for (key, file) in [("ca_file", ca_file), ("token_file", token_file)] {
            if let Some(file) = file {
                lines.push_str(&format!("{key} = {file:?}\n"));
            }
        }
        lines.push_str(more);
        agent.files.write(name, servers, &lines)?;
        agent.boot()?;
        Ok(agent)
    }

    /// Changes the boot id.
    pub(super) fn boot(&self) -> Result<String> {
        boot_id::change(&self.boot_file())
    }

    /// Starts the process, and waits until it serves its socket.
    pub(super) async fn start(&mut self) -> Result<()> {
        if self.process.is_some() {
            return Ok(());
        }
        let log = File::options().create(true).append(true).open(self.log_file())?;
        // The plugin must not reach the socket of the previous process.
        let _gone = fs::remove_file(self.socket());
        let mut command = inside(&self.settings.netns, "setpriv");
        // The agent ends with this program.
        command.args(["--pdeathsig", "KILL", "unshare"]).args(WITH_BOOT_ID).arg(self.boot_file());
        command.arg(&self.settings.agent).args(["serve", "--config"]).arg(self.files.config());
        for option in &self.settings.test_options {
            command.args(["--test-option", option]);
        }
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("IPAM_AGENT_LOG", "info").process_group(0);
        mark(command.as_std_mut());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.process = Some(command.spawn().context("can't start nsenter; the package util-linux has it")?);
        self.serves().await
    }

    async fn serves(&mut self) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < STARTING {
            if UnixStream::connect(self.socket()).await.is_ok() {
                return Ok(());
            }
            if let Some(status) = self.ended()? {
                bail!("the agent of {} ended ({status})\n{}", self.settings.name, self.tail());
            }
            sleep(LOOK).await;
        }
        bail!("the agent of {} doesn't serve its socket\n{}", self.settings.name, self.tail())
    }

    /// Exit status of a process that ended by itself.
    pub(super) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        let Some(process) = &mut self.process else { return Ok(None) };
        let status = process.try_wait()?;
        if status.is_some() {
            self.process = None;
        }
        Ok(status)
    }

    /// Sends SIGKILL; returns the exit status if the agent ran.
    pub(super) async fn kill(&mut self) -> Result<Option<ExitStatus>> {
        let Some(mut process) = self.process.take() else { return Ok(None) };
        let _ended = process.start_kill();
        Ok(Some(process.wait().await?))
    }

    /// Sends SIGSTOP or SIGCONT; returns false if the agent doesn't run.
    pub(super) fn pause(&mut self, is_paused: bool) -> Result<bool> {
        let id = self.process.as_ref().and_then(Child::id).and_then(|id| Pid::from_raw(id.cast_signed()));
        let Some(id) = id else { return Ok(false) };
        kill_process(id, if is_paused { Signal::STOP } else { Signal::CONT })?;
        Ok(true)
    }

    /// Process id, if the agent runs.
    pub(super) fn id(&self) -> Option<u32> {
        self.process.as_ref().and_then(Child::id)
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.files.socket()
    }

    fn log_file(&self) -> PathBuf {
        self.settings.dir.join(LOG)
    }

    fn boot_file(&self) -> PathBuf {
        self.settings.dir.join("boot_id")
    }

    /// Last lines of the agent's log.
    fn tail(&self) -> String {
        log::tail("the agent", &self.log_file())
    }
}
