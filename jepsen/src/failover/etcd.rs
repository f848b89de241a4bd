//! etcd of Debian with its default settings, over its JSON gateway.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use futures::future::BoxFuture;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::system::System;
use crate::loopback::free_addresses;

const MEMBERS: usize = 3;
/// Path of the program in the Debian package.
const PROGRAM: &str = "usr/bin/etcd";
/// Time limit for the start of a member.
const SERVES_WITHIN: Duration = Duration::from_secs(60);
/// Pause between two requests for the state of a member.
const LOOK: Duration = Duration::from_millis(20);
/// Time for one answer about the state of a member.
const PATIENCE: Duration = Duration::from_secs(2);

struct Member {
    name: String,
    client: SocketAddr,
    client_url: String,
    peer_url: String,
    process: Option<Child>,
}

/// Cluster of etcd.
pub(crate) struct Etcd {
    program: PathBuf,
    dir: PathBuf,
    members: Vec<Member>,
    http: reqwest::Client,
}

impl Etcd {
    /// Starts three members in a directory.
    pub(crate) fn start(dir: &Path, unpacked: &Path) -> Result<Self> {
        let program = unpacked.join(PROGRAM);
        let program = fs::canonicalize(&program)
            .with_context(|| format!("no {}; first: cargo xtask failover", program.display()))?;
        fs::create_dir_all(dir)?;
        let addresses = free_addresses(2 * MEMBERS)?;
        let members = addresses.chunks(2).zip(1..).filter_map(|(addresses, number)| match *addresses {
            [client, peer] => Some(Member {
                name: format!("e{number}"),
                client,
                client_url: format!("http://{client}"),
                peer_url: format!("http://{peer}"),
                process: None,
            }),
            _ => None,
        });
        let http = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build()?;
        let mut etcd = Self { program, dir: dir.to_owned(), members: members.collect(), http };
        (0..MEMBERS).try_for_each(|at| etcd.spawn(at))?;
        Ok(etcd)
    }

    /// Addresses of all members for clients.
    pub(crate) fn client_addresses(&self) -> Vec<SocketAddr> {
        self.members.iter().map(|member| member.client).collect()
    }

    /// Processes of all members; none for one that does not run.
    pub(crate) fn pids(&self) -> Vec<Option<u32>> {
        self.members.iter().map(|member| member.process.as_ref().map(Child::id)).collect()
    }

    fn spawn(&mut self, at: usize) -> Result<()> {
        let peers: Vec<String> =
            self.members.iter().map(|member| format!("{}={}", member.name, member.peer_url)).collect();
        let member = self.members.get_mut(at).context("no such member")?;
        let log =
            File::options().create(true).append(true).open(self.dir.join(format!("{}.log", member.name)))?;
        // etcd has no option to end with its parent process.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(&self.program).args(["--name", &member.name]);
        command.arg("--data-dir").arg(self.dir.join(&member.name));
        command.args(["--listen-client-urls", &member.client_url]);
        command.args(["--advertise-client-urls", &member.client_url]);
        command.args(["--listen-peer-urls", &member.peer_url]);
        command.args(["--initial-advertise-peer-urls", &member.peer_url]);
        command.args(["--initial-cluster", &peers.join(","), "--log-level", "error"]);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).process_group(0);
        member.process = Some(command.spawn().context("etcd can't be started (setpriv of util-linux)")?);
        Ok(())
    }

    /// Waits until a member serves writes.
    async fn serves(&self, at: usize) -> Result<()> {
        let member = self.members.get(at).context("no such member")?;
        let begun = Instant::now();
        loop {
            let answer = self.http.get(format!("{}/health", member.client_url)).send().await;
            if answer.is_ok_and(|answer| answer.status().is_success()) {
                return Ok(());
            }
            if begun.elapsed() > SERVES_WITHIN {
                bail!("{} of etcd does not serve", member.name);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Returns true if a member is the leader.
    async fn leads(&self, member: &Member) -> Result<bool> {
        let request = self.http.post(format!("{}/v3/maintenance/status", member.client_url)).body("{}");
        let status: Value = serde_json::from_slice(&request.send().await?.bytes().await?)?;
        let leader = status.pointer("/leader");
        Ok(leader.is_some() && leader == status.pointer("/header/member_id"))
    }
}

impl System for Etcd {
    fn name(&self) -> &'static str {
        "etcd"
    }

    fn urls(&self) -> Vec<String> {
        self.members.iter().map(|member| format!("{}/v3/kv/put", member.client_url)).collect()
    }

    fn body(&self) -> fn() -> Value {
        // 32 hexadecimal digits are valid Base64.
        || json!({"key": uuid::Uuid::new_v4().simple().to_string(), "value": "aXBhbWQ="})
    }

    fn prepare(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            for at in 0..self.members.len() {
                self.serves(at).await?;
            }
            Ok(())
        })
    }

    fn leader(&self) -> BoxFuture<'_, Result<usize>> {
        Box::pin(async {
            for (at, member) in self.members.iter().enumerate() {
                if self.leads(member).await? {
                    return Ok(at);
                }
            }
            bail!("etcd has no leader")
        })
    }

    fn kill(&mut self, at: usize) -> Result<()> {
        if let Some(mut process) = self.members.get_mut(at).and_then(|member| member.process.take()) {
            process.kill()?;
            process.wait()?;
        }
        Ok(())
    }

    fn pause(&mut self, at: usize, is_paused: bool) -> Result<()> {
        let process = self.members.get(at).and_then(|member| member.process.as_ref());
        let process = process.context("the member does not run")?;
        let signal = if is_paused { Signal::STOP } else { Signal::CONT };
        Ok(kill_process(Pid::from_child(process), signal)?)
    }

    fn restart(&mut self, at: usize) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.spawn(at)?;
            self.serves(at).await
        })
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        for at in 0..self.members.len() {
            if let Err(error) = self.kill(at) {
                eprintln!("{error:#}");
            }
        }
    }
}
