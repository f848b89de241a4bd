//! Three real members on directories of their own, with a common delay of fsync.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use ipam_api::client::{Call, Client};
use ipam_api::cluster::Cluster as Shown;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::POOL;
use crate::loopback::free_addresses;

/// The number of members.
const MEMBERS: usize = 3;
/// The time in which a cluster on fast disks is ready.
const COME_BACK: Duration = Duration::from_secs(60);
/// The pause between two polls.
const LOOK: Duration = Duration::from_millis(5);
/// The time for one answer.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Debug)]
struct Member {
    name: String,
    client: SocketAddr,
    process: Option<Child>,
}

/// The members.
#[derive(Debug)]
pub(crate) struct Cluster {
    members: Vec<Member>,
    dir: PathBuf,
    program: Vec<PathBuf>,
}

impl Cluster {
    /// Prepares members in `dir`, which holds the control file `disk`, without starting them. `program` is
    /// ipamd with its prefix.
    pub(crate) fn make(dir: &Path, program: &[PathBuf]) -> Result<Self> {
        fs::create_dir_all(dir)?;
        let members = free_addresses(MEMBERS)?.into_iter().zip(1..);
        let members =
            members.map(|(client, number)| Member { name: format!("n{number}"), client, process: None });
        let cluster = Self { members: members.collect(), dir: dir.to_owned(), program: program.to_vec() };
        cluster.delay(0, false)?;
        Ok(cluster)
    }

    /// Sets the delay of each fsync that begins from now on.
    pub(crate) fn delay(&self, ms: u64, parallel: bool) -> Result<()> {
        let written = self.dir.join("disk.new");
        fs::write(&written, format!("fsync-ms {ms}\nfsync-parallel {}\n", u8::from(parallel)))?;
        Ok(fs::rename(written, self.dir.join("disk"))?)
    }

    pub(crate) fn start_all(&mut self) -> Result<()> {
        (0..self.members.len()).try_for_each(|at| self.start(at))
    }

    /// Starts one member.
    pub(crate) fn start(&mut self, at: usize) -> Result<()> {
        let sockets = self.dir.join("peers");
        let peer = |name: &str| format!("{name}=unix:{}", sockets.join(name).display());
        let peers: Vec<String> = self.members.iter().map(|member| peer(&member.name)).collect();
        let (program, before) = self.program.split_first().context("no program")?;
        let member = self.members.get_mut(at).context("no such member")?;
        let log =
            File::options().create(true).append(true).open(self.dir.join(format!("{}.log", member.name)))?;
        let mut command = Command::new(program);
        command.args(before).args(["serve", "--stop-with-parent", "--name", &member.name]);
        command.arg("--data-dir").arg(self.dir.join(&member.name));
        command.args(["--client-listen", &member.client.to_string()]);
        peers.iter().for_each(|peer| {
            command.args(["--member", peer]);
        });
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        if let Some(level) = std::env::var_os("IPAMD_LOG") {
            command.env("IPAMD_LOG", level);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).process_group(0);
        member.process = Some(command.spawn().context("ipamd can't be started")?);
        Ok(())
    }

    /// Kills a member (SIGKILL).
    pub(crate) fn kill(&mut self, at: usize) -> Result<()> {
        if let Some(mut process) = self.members.get_mut(at).and_then(|member| member.process.take()) {
            process.kill()?;
            process.wait()?;
        }
        Ok(())
    }

    /// Sends a signal to one member.
    pub(crate) fn signal(&self, at: usize, signal: Signal) -> Result<()> {
        let process = self.members.get(at).and_then(|member| member.process.as_ref());
        Ok(kill_process(Pid::from_child(process.context("the member does not run")?), signal)?)
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        self.members.iter().map(url).collect()
    }

    /// Waits until all members are ready.
    pub(crate) async fn ready(&mut self) -> Result<()> {
        let begun = Instant::now();
        for member in &mut self.members {
            let client = Client::new(&[url(member)])?;
            while let Err(error) = client.send(Call::get("/readyz").within(PATIENCE)).await {
                let ended = member.process.as_mut().map(Child::try_wait).transpose()?.flatten();
                if let Some(status) = ended {
                    bail!("{} has ended: {status}", member.name);
                }
                if begun.elapsed() > COME_BACK {
                    return Err(error).with_context(|| format!("{} does not get ready", member.name));
                }
                tokio::time::sleep(LOOK).await;
            }
        }
        Ok(())
    }

    /// Leader and its term, from the first member that knows one.
    pub(crate) async fn leader(&self) -> Option<(usize, u64)> {
        for member in self.members.iter().filter(|member| member.process.is_some()) {
            let client = Client::new(&[url(member)]).ok()?;
            if let Ok(shown) = client.call::<Shown>(Call::get("/v1/cluster").within(PATIENCE)).await
                && let Some(leader) = shown.leader
            {
                let at = self.members.iter().position(|member| member.name == leader)?;
                return Some((at, shown.term));
            }
        }
        None
    }

    /// Makes the pool that the writers use.
    pub(crate) async fn make_pool(&self) -> Result<()> {
        let client = Client::new(&self.urls())?;
        let subnet = json!({"name": POOL, "cidr": "10.7.0.0/16", "gateway": "10.7.0.1"});
        let pool = json!({"name": POOL, "subnet": POOL, "cooling_ms": 0});
        for (plural, body) in [("subnets", subnet), ("pools", pool)] {
            let call = Call::put(format!("/v1/{plural}/{POOL}")).json(&body)?.within(COME_BACK);
            client.send(call).await.context("no pool can be made")?;
        }
        Ok(())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for at in 0..self.members.len() {
            if let Err(error) = self.kill(at) {
                eprintln!("{error:#}");
            }
        }
    }
}

fn url(member: &Member) -> String {
    format!("http://{}", member.client)
}
