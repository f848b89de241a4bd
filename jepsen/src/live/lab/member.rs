//! Member: a process with its host, its disk and its log.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use std::os::unix::process::CommandExt as _;

use anyhow::{Context as _, Result, bail};
use ipam_api::client::Client;
use rustix::process::{Pid, Signal, kill_process};

use super::access::Holder;
use super::outside::Outside;
use super::reaper::mark;
use crate::cluster::Standing;
use crate::live::boot_id::{self, WITH_BOOT_ID};
use crate::live::network::Host;
use crate::live::{Cut, Disk, log};

/// Port for clients.
pub(super) const CLIENT_PORT: u16 = 7440;
/// Port for other members.
pub(super) const PEER_PORT: u16 = 7441;
/// Data directory, several levels deep: the names of all levels must survive a power cut, too.
const DATA_DIR: &str = "var/lib/ipamd";
/// Time limit of the end of a killed process.
const END: Duration = Duration::from_secs(20);

/// Way in which a member enters the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    /// The member founds the cluster with the other founders.
    Founder,
    /// The member joins with the token in this file.
    Joiner(PathBuf),
}

/// Part of a command line that is the same for all members.
#[derive(Debug, Clone)]
pub(super) struct Launch {
    /// Program that injects faults of fsync and of the clock.
    pub(super) outside: PathBuf,
    pub(super) ipamd: PathBuf,
    pub(super) config: PathBuf,
    pub(super) test_options: Vec<String>,
    /// Names and peer addresses of the founders.
    pub(super) founders: Vec<(String, String)>,
    /// URLs of the members to which a joiner sends its request.
    pub(super) join: Vec<String>,
}

/// One member.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) host: Arc<Host>,
    pub(super) disk: Disk,
    pub(super) outside: Outside,
    pub(super) origin: Origin,
    /// Certificate; none without TLS.
    pub(super) holder: Option<Holder>,
    /// True if its program knows the next feature level.
    pub(super) is_upgraded: bool,
    pub(super) is_paused: bool,
    /// Power cut of the disk that is not yet restored.
    pub(super) cut: Option<Cut>,
    pub(super) standing: Standing,
    /// True if the suite has sent SIGKILL to its process.
    pub(super) is_shot: bool,
    /// Delayed calls of fsync when its disk became slow.
    pub(super) delayed_before: u64,
    process: Option<Child>,
    dir: PathBuf,
    pub(super) log: PathBuf,
}

impl Member {
    /// A stopped member with an empty disk. Its files are in `dir`, its log is in `logs`.
    pub(super) fn make(dir: &Path, logs: &Path, host: Arc<Host>, holder: Option<Holder>) -> Result<Self> {
        let name = host.name.clone();
        let member = Self {
            disk: Disk::make(dir, &name)?,
            outside: Outside::make(dir.join(format!("{name}.outside")))?,
            origin: Origin::Founder,
            holder,
            is_upgraded: false,
            is_paused: false,
            cut: None,
            standing: Standing::default(),
            is_shot: false,
            delayed_before: 0,
            process: None,
            dir: dir.to_owned(),
            log: logs.join(format!("{name}.log")),
            name,
            host,
        };
        member.boot()?;
        Ok(member)
    }

    /// Changes the boot id, so that the member notices a reboot.
    pub(super) fn boot(&self) -> Result<()> {
        boot_id::change(&self.boot_file())?;
        Ok(())
    }

    /// Starts the process.
    pub(super) fn start(&mut self, launch: &Launch) -> Result<()> {
        if self.process.is_some() {
            bail!("{} runs already", self.name);
        }
        let log = File::options().create(true).append(true).open(&self.log)?;
        let mut command = self.host.command("unshare");
        command.args(WITH_BOOT_ID).arg(self.boot_file());
        command.arg(&launch.outside).arg("supervise").arg(self.outside.path());
        command.arg(&launch.ipamd).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        mark(&mut command);
        self.serve(&mut command, launch);
        // Ctrl-C must reach the suite only, which ends the members itself.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).process_group(0);
        let process = command.spawn().context("can't start nsenter; the package util-linux has it")?;
        self.process = Some(process);
        self.is_shot = false;
        Ok(())
    }

    /// Adds `serve` with its options.
    fn serve(&self, command: &mut Command, launch: &Launch) {
        command.args(["serve", "--name", &self.name]).arg("--config").arg(&launch.config);
        command.arg("--data-dir").arg(self.data_dir()).arg("--client-socket").arg(self.socket());
        command.args(["--client-listen", &format!("[::]:{CLIENT_PORT}"), "--client-url", &self.url()]);
        command.args(["--peer-listen", &format!("[::]:{PEER_PORT}")]);
        command.env("IPAMD_PEER_ADDRESS", self.peer());
        for option in &launch.test_options {
            command.args(["--test-option", option]);
        }
        if self.is_upgraded {
            command.args(["--test-option", "next-level"]);
        }
        match &self.holder {
            Some(holder) => holder.serve(command),
            None => _ = command.arg("--insecure"),
        }
        match &self.origin {
            Origin::Founder => {
                for (name, peer) in &launch.founders {
                    command.args(["--member", &format!("{name}={peer}")]);
                }
            }
            Origin::Joiner(token) => {
                command.env("IPAMD_JOIN", launch.join.join(",")).env("IPAMD_JOIN_TOKEN_FILE", token);
            }
        }
    }

    /// Address for other members.
    pub(super) fn peer(&self) -> String {
        format!("{}:{PEER_PORT}", self.host.ipv4)
    }

    /// URL for clients.
    pub(super) fn url(&self) -> String {
        let scheme = if self.holder.is_some() { "https" } else { "http" };
        format!("{scheme}://{}:{CLIENT_PORT}", self.host.ipv4)
    }

    /// URL for clients by IPv6.
    pub(super) fn url_ipv6(&self) -> String {
        let scheme = if self.holder.is_some() { "https" } else { "http" };
        format!("{scheme}://[{}]:{CLIENT_PORT}", self.host.ipv6)
    }

    /// Socket for administrators, which no fault of the network reaches.
    pub(super) fn socket(&self) -> PathBuf {
        self.dir.join(format!("{}.sock", self.name))
    }

    /// Client of the socket for administrators.
    pub(super) fn control(&self) -> Result<Client> {
        Ok(Client::new(&[self.socket_url()])?)
    }

    /// URL of the socket for administrators.
    pub(super) fn socket_url(&self) -> String {
        format!("unix:{}", self.socket().display())
    }

    pub(super) fn data_dir(&self) -> PathBuf {
        self.disk.place().join(DATA_DIR)
    }

    fn boot_file(&self) -> PathBuf {
        self.dir.join(format!("{}.boot_id", self.name))
    }

    /// Returns true if the process was started and its end was not seen.
    pub(super) fn is_started(&self) -> bool {
        self.process.is_some()
    }

    pub(super) fn process_id(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// Exit status of a process that has ended.
    pub(super) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        let Some(process) = &mut self.process else { return Ok(None) };
        let status = process.try_wait()?;
        if status.is_some() {
            self.process = None;
            self.is_paused = false;
        }
        Ok(status)
    }

    pub(super) fn signal(&self, signal: Signal) -> Result<()> {
        let Some(id) = self.process_id() else { return Ok(()) };
        let id = i32::try_from(id).ok().and_then(Pid::from_raw).context("a process id")?;
        kill_process(id, signal).with_context(|| format!("{} can't be signalled", self.name))
    }

    /// Sends SIGKILL, without waiting for the end.
    pub(super) fn shoot(&mut self) -> Result<()> {
        self.is_shot = self.is_started();
        self.signal(Signal::KILL)
    }

    /// Sends SIGKILL, and waits for the end. A frozen disk is thawed, because it blocks the end.
    pub(super) async fn kill(&mut self) -> Result<Option<ExitStatus>> {
        let Some(process) = &mut self.process else { return Ok(None) };
        process.kill()?;
        self.disk.thaw()?;
        self.wait(END).await
    }

    /// Waits for the end of the process.
    pub(super) async fn wait(&mut self, limit: Duration) -> Result<Option<ExitStatus>> {
        let begun = Instant::now();
        while self.process.is_some() {
            if let Some(status) = self.ended()? {
                return Ok(Some(status));
            }
            if begun.elapsed() > limit {
                bail!("{} doesn't end within {} s\n{}", self.name, limit.as_secs(), self.tail());
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Ok(None)
    }

    /// Removes the data directory of a stopped member.
    pub(super) fn wipe(&self) -> Result<()> {
        if self.process.is_some() {
            bail!("{} runs on its data directory", self.name);
        }
        match fs::remove_dir_all(self.data_dir()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| self.data_dir().display().to_string())
            }
            _ => Ok(()),
        }
    }

    /// Last lines of the member's log.
    pub(super) fn tail(&self) -> String {
        log::tail(&self.name, &self.log)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        let _ended = process.kill();
        if let Err(error) = self.disk.thaw() {
            eprintln!("{error:#}");
        }
        let _ended = process.wait();
    }
}
