//! Member: a real process with its own disk and its own boot id.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use ipam_api::client::{Call, Client};
use ipam_api::cluster::Cluster as Shown;

use crate::live::boot_id::{self, WITH_BOOT_ID};
use crate::live::{Cut, Disk, log};

/// Data directory, several levels deep. No level exists at first, and the names of all must survive, too.
const DATA_DIR: &str = "var/lib/ipamd";
/// Timeout of one request to a member.
const PATIENCE: Duration = Duration::from_secs(2);

/// A member that may or may not be up.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) client: SocketAddr,
    process: Option<Child>,
    pub(super) disk: Disk,
    dir: PathBuf,
}

impl Member {
    /// Creates a member with an empty disk; all of its files are in `dir`.
    pub(super) fn make(dir: &Path, name: String, client: SocketAddr) -> Result<Self> {
        let disk = Disk::make(dir, &name)?;
        let member = Self { disk, name, client, process: None, dir: dir.to_owned() };
        member.boot()?;
        File::create(member.log_file())?;
        Ok(member)
    }

    /// Changes the boot id, so that the member notices a reboot: the contents of memory are lost.
    fn boot(&self) -> Result<()> {
        boot_id::change(&self.boot_file())?;
        Ok(())
    }

    /// Starts the process: `program` is ipamd with any wrapper before it.
    pub(super) fn start(&mut self, program: &[PathBuf], peers: &[(String, String)]) -> Result<()> {
        let log = File::options().append(true).open(self.log_file())?;
        let mut command = Command::new("unshare");
        command.args(WITH_BOOT_ID).arg(self.boot_file()).args(program);
        command.args(["serve", "--stop-with-parent", "--name", &self.name]);
        command.arg("--config").arg(self.dir.join("ipamd.toml")).arg("--data-dir").arg(self.data_dir());
        command.args(["--client-listen", &self.client.to_string()]);
        for (name, peer) in peers {
            command.args(["--member", &format!("{name}={peer}")]);
        }
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        // Ctrl-C is for this process, which ends the members itself.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).process_group(0);
        self.process = Some(command.spawn().context("can't start unshare; the package util-linux has it")?);
        Ok(())
    }

    /// Unix socket for peers, next to its disk.
    pub(super) fn peer_address(&self) -> String {
        format!("unix:{}", self.dir.join("peers").join(&self.name).display())
    }

    pub(super) fn process_id(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// Kills the process (SIGKILL).
    pub(super) fn kill(&mut self) -> Result<()> {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            process.wait().with_context(|| format!("{} doesn't end", self.name))?;
        }
        Ok(())
    }

    /// Restores the power of its disk after a cut; the process must be dead.
    pub(super) fn power_on(&mut self, after: Cut) -> Result<()> {
        if self.process.is_some() {
            bail!("{} runs on without power", self.name);
        }
        self.disk.power_on(after)?;
        self.boot()
    }

    /// Exit status of a process that ended by itself.
    pub(super) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        let Some(process) = &mut self.process else { return Ok(None) };
        Ok(process.try_wait()?)
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.client)
    }

    /// A client of this member alone.
    pub(super) fn ask(&self) -> Result<Client> {
        Ok(Client::new(&[self.url()])?)
    }

    pub(super) async fn is_ready(&self) -> Result<()> {
        self.ask()?.send(Call::get("/readyz").within(Duration::from_millis(200))).await?;
        Ok(())
    }

    /// Cluster as this member sees it.
    pub(super) async fn shown(&self) -> Result<Shown> {
        let answer = self.ask()?.call(Call::get("/v1/cluster").within(PATIENCE)).await;
        answer.with_context(|| self.name.clone())
    }

    pub(super) fn data_dir(&self) -> PathBuf {
        self.disk.place().join(DATA_DIR)
    }

    /// True if a snapshot is being written into its directory.
    pub(super) fn has_unfinished_snapshot(&self) -> bool {
        let Ok(files) = fs::read_dir(self.data_dir().join("snapshot")) else { return false };
        files.flatten().any(|file| file.file_name() != "current")
    }

    /// Last lines of the member's log.
    pub(super) fn tail(&self) -> String {
        log::tail(&self.name, &self.log_file())
    }

    fn log_file(&self) -> PathBuf {
        self.dir.join(format!("{}.log", self.name))
    }

    fn boot_file(&self) -> PathBuf {
        self.dir.join(format!("{}.boot_id", self.name))
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // The process must end before its disk is unmounted; the disk is dropped afterwards.
        if let Err(error) = self.kill() {
            eprintln!("{error:#}");
        }
    }
}
