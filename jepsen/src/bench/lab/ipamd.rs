//! Three members of ipamd on loopback, of this build or of an older one.
//!
//! Peers use TCP without TLS, as the peers of etcd do. Responses are read as plain JSON, so that an older
//! build with another schema can be measured, too.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use ipam_api::client::{Call, Client};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::bench::load::Process;
use crate::loopback::free_addresses;

const MEMBERS: usize = 3;
/// Time in which a cluster is ready, and in which a change is done.
const PATIENCE: Duration = Duration::from_secs(120);
/// Time limit of one request for the state of a member.
const LOOK_WITHIN: Duration = Duration::from_secs(5);
/// Pause between two polls.
const LOOK: Duration = Duration::from_millis(20);

#[derive(Debug)]
struct Member {
    name: String,
    client: SocketAddr,
    peer: SocketAddr,
    process: Option<Child>,
}

/// Cluster. Dropping it kills all of its processes.
#[derive(Debug)]
pub(in crate::bench) struct Ipamd {
    program: PathBuf,
    dir: PathBuf,
    members: Vec<Member>,
    environment: Vec<(String, String)>,
}

impl Ipamd {
    /// Starts a cluster in a new directory, and waits until it is ready.
    pub(in crate::bench) async fn start(dir: &Path, program: &Path) -> Result<Self> {
        Self::start_with(dir, program, &[]).await
    }

    /// Starts a cluster as [`Self::start`] does, with settings from the environment.
    pub(in crate::bench) async fn start_with(
        dir: &Path,
        program: &Path,
        environment: &[(&str, &str)],
    ) -> Result<Self> {
        let program = fs::canonicalize(program).with_context(|| format!("no {}", program.display()))?;
        fs::create_dir_all(dir)?;
        let addresses = free_addresses(2 * MEMBERS)?;
        let members = addresses.chunks(2).zip(1..).filter_map(|(addresses, number)| match *addresses {
            [client, peer] => Some(Member { name: format!("n{number}"), client, peer, process: None }),
            _ => None,
        });
        let (dir, members, environment) = (dir.to_owned(), members.collect(), owned(environment));
        let mut cluster = Self { program, dir, members, environment };
        cluster.start_all()?;
        cluster.ready().await?;
        Ok(cluster)
    }

    /// Stops all members in good order and starts them with other settings.
    pub(in crate::bench) async fn restart_with(&mut self, environment: &[(&str, &str)]) -> Result<()> {
        for at in 0..self.members.len() {
            self.stop(at).await?;
        }
        self.environment = owned(environment);
        self.start_all()?;
        self.ready().await
    }

    fn start_all(&mut self) -> Result<()> {
        (0..self.members.len()).try_for_each(|at| self.start_member(at))
    }

    /// Starts one member.
    pub(in crate::bench) fn start_member(&mut self, at: usize) -> Result<()> {
        let peers: Vec<String> =
            self.members.iter().map(|member| format!("{}={}", member.name, member.peer)).collect();
        let member = self.members.get_mut(at).context("no such member")?;
        let log =
            File::options().create(true).append(true).open(self.dir.join(format!("{}.log", member.name)))?;
        let mut command = Command::new(&self.program);
        command.args(["serve", "--stop-with-parent", "--insecure", "--name", &member.name]);
        command.arg("--data-dir").arg(self.dir.join(&member.name));
        command.args(["--client-listen", &member.client.to_string()]);
        command.args(["--peer-listen", &member.peer.to_string()]);
        peers.iter().for_each(|peer| {
            command.args(["--member", peer]);
        });
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).process_group(0);
        member.process = Some(command.spawn().context("ipamd can't be started")?);
        Ok(())
    }

    /// Stops one member in good order (SIGTERM).
    pub(in crate::bench) async fn stop(&mut self, at: usize) -> Result<()> {
        let member = self.members.get_mut(at).context("no such member")?;
        let mut process = member.process.take().context("the member does not run")?;
        kill_process(Pid::from_child(&process), Signal::TERM)?;
        let begun = Instant::now();
        while process.try_wait()?.is_none() {
            if begun.elapsed() > PATIENCE {
                process.kill()?;
                process.wait()?;
                bail!("{} does not stop", member.name);
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// Waits until all running members are ready.
    pub(in crate::bench) async fn ready(&mut self) -> Result<()> {
        for at in 0..self.members.len() {
            let begun = Instant::now();
            while let Err(error) = self.is_ready(at).await {
                let member = self.members.get_mut(at).context("no such member")?;
                let ended = member.process.as_mut().map(Child::try_wait).transpose()?.flatten();
                if let Some(status) = ended {
                    let log = self.dir.join(format!("{}.log", member.name));
                    bail!("{} has ended: {status}; {}", member.name, last_line(&log));
                }
                if begun.elapsed() > PATIENCE {
                    return Err(error).with_context(|| format!("{} does not get ready", member.name));
                }
                tokio::time::sleep(LOOK).await;
            }
        }
        Ok(())
    }

    /// Succeeds if a member is ready.
    pub(in crate::bench) async fn is_ready(&self, at: usize) -> Result<()> {
        let client = Client::new(&[self.url(at)?])?;
        client.send(Call::get("/readyz").within(LOOK_WITHIN)).await?;
        Ok(())
    }

    /// Position of the leader.
    pub(in crate::bench) async fn leader(&self) -> Result<usize> {
        let begun = Instant::now();
        loop {
            for at in 0..self.members.len() {
                if let Some(leader) = self.leader_by(at).await {
                    return Ok(leader);
                }
            }
            if begun.elapsed() > PATIENCE {
                bail!("ipamd has no leader");
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Position of the leader in the view of one member.
    async fn leader_by(&self, at: usize) -> Option<usize> {
        let client = Client::new(&[self.url(at).ok()?]).ok()?;
        let shown = client.call::<Value>(Call::get("/v1/cluster").within(LOOK_WITHIN)).await.ok()?;
        let leader = shown.pointer("/leader")?.as_str()?;
        self.members.iter().position(|member| member.name == leader)
    }

    /// Position of a follower.
    pub(in crate::bench) async fn follower(&self) -> Result<usize> {
        let leader = self.leader().await?;
        (0..self.members.len()).find(|at| *at != leader).context("no follower")
    }

    /// Addresses of all members for clients, the leader's first.
    pub(in crate::bench) async fn servers(&self) -> Result<Vec<SocketAddr>> {
        let leader = self.leader().await?;
        let mut servers: Vec<SocketAddr> = self.members.iter().map(|member| member.client).collect();
        servers.rotate_left(leader);
        Ok(servers)
    }

    /// All running members, as leader and followers.
    pub(in crate::bench) async fn processes(&self) -> Result<Vec<Process>> {
        let leader = self.leader().await?;
        let name = |at| if at == leader { "leader" } else { "follower" };
        let running = (0..self.members.len()).filter_map(|at| Some((at, self.pid(at).ok()?)));
        Ok(running.map(|(at, pid)| Process { name: name(at).to_owned(), pid }).collect())
    }

    /// Process of a member.
    pub(in crate::bench) fn pid(&self, at: usize) -> Result<u32> {
        let process = self.members.get(at).and_then(|member| member.process.as_ref());
        Ok(process.context("the member does not run")?.id())
    }

    /// Data directory of a member.
    pub(in crate::bench) fn data_dir(&self, at: usize) -> Result<PathBuf> {
        Ok(self.dir.join(&self.members.get(at).context("no such member")?.name))
    }

    fn url(&self, at: usize) -> Result<String> {
        Ok(format!("http://{}", self.members.get(at).context("no such member")?.client))
    }

    /// URLs of all members.
    pub(in crate::bench) fn urls(&self) -> Vec<String> {
        self.members.iter().map(|member| format!("http://{}", member.client)).collect()
    }

    /// Client for requests that are not measured.
    pub(in crate::bench) fn client(&self) -> Result<Client> {
        Ok(Client::new(&self.urls())?)
    }

    /// Puts a resource.
    pub(in crate::bench) async fn put(&self, plural: &str, name: &str, body: &Value) -> Result<()> {
        let call = Call::put(format!("/v1/{plural}/{name}")).json(body)?.within(PATIENCE);
        self.client()?.send(call).await.with_context(|| format!("{plural}/{name} can't be made"))?;
        Ok(())
    }

    /// Creates a subnet, and a pool of the same name that covers the subnet, with the fields in `more`.
    pub(in crate::bench) async fn make_pool(&self, name: &str, cidr: &str, more: &Value) -> Result<()> {
        self.put("subnets", name, &json!({"name": name, "cidr": cidr})).await?;
        let mut pool = json!({"name": name, "subnet": name, "cooling_ms": 0});
        if let (Some(pool), Some(more)) = (pool.as_object_mut(), more.as_object()) {
            pool.extend(more.clone());
        }
        self.put("pools", name, &pool).await
    }

    /// Number of allocated addresses of a pool.
    pub(in crate::bench) async fn allocated(&self, pool: &str) -> Result<u64> {
        let call = Call::get(format!("/v1/pools/{pool}")).within(PATIENCE);
        let shown: Value = self.client()?.call(call).await?;
        shown.pointer("/status/counts/allocated").and_then(Value::as_u64).context("no counts")
    }

    /// Value of a counter in the metrics of a member; none while the member starts.
    pub(in crate::bench) async fn metric(&self, at: usize, name: &str) -> Option<u64> {
        let client = Client::new(&[self.url(at).ok()?]).ok()?;
        let answer = client.send(Call::get("/metrics").within(LOOK_WITHIN)).await.ok()?;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")))?.trim().parse().ok()
    }

    /// Number of members.
    pub(in crate::bench) fn count(&self) -> usize {
        self.members.len()
    }
}

impl Drop for Ipamd {
    fn drop(&mut self) {
        for member in &mut self.members {
            if let Some(mut process) = member.process.take() {
                let ended = process.kill().and_then(|()| process.wait());
                if let Err(error) = ended {
                    eprintln!("{}: {error}", member.name);
                }
            }
        }
    }
}

fn owned(environment: &[(&str, &str)]) -> Vec<(String, String)> {
    environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn last_line(log: &Path) -> String {
    fs::read_to_string(log).unwrap_or_default().lines().last().unwrap_or_default().to_owned()
}
