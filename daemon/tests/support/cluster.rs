//! A cluster of real members on loopback, at an address of its own so that no two tests meet.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use ipam_api::client::{Call, Client};
use ipam_api::cluster::Cluster as Shown;
use tempfile::TempDir;

use super::member::Member;
use super::tls::Ca;
use super::until;

/// Timing of `[raft]` for tests in which the leader must stay: on a busy machine heartbeats may be late.
const CALM: &str = "heartbeat_ms = 500\nelection_min_ms = 5000\nelection_max_ms = 8000";

/// Members that are, or are to be, one cluster.
pub(crate) struct Cluster {
    pub(crate) members: Vec<Member>,
    pub(crate) dir: TempDir,
    ip: IpAddr,
}

impl Cluster {
    /// This many stopped members. Their elections are slower than by default, so that a busy machine isn't
    /// taken for a dead leader. Leases end soon after the beginning of a leadership.
    pub(crate) fn of(count: usize) -> Self {
        let timing = "heartbeat_ms = 100\nelection_min_ms = 600\nelection_max_ms = 1000";
        Self::of_with(count, &format!("{timing}\nlease_grace_ms = 500"))
    }

    /// The same with other settings of `[raft]`.
    pub(crate) fn of_with(count: usize, raft: &str) -> Self {
        let dir = TempDir::new().unwrap();
        // All of 127/8 is this machine's.
        let [_, x, y, z, ..] = *uuid::Uuid::new_v4().as_bytes();
        let ip = IpAddr::V4(Ipv4Addr::new(127, 64 + x % 64, y, z));
        let ports = free_ports(ip, 2 * count);
        let members = ports.chunks(2).zip(1..);
        let members =
            members.map(|(ports, number)| Member::new(&format!("n{number}"), ports[0], ports[1], dir.path()));
        let cluster = Self { members: members.collect(), ip, dir };
        let config = format!("log = \"info\"\n[raft]\n{raft}\n");
        std::fs::write(cluster.config(), config).unwrap();
        cluster
    }

    /// Stopped members with TLS on all ports, by a CA of their own.
    pub(crate) fn secure(count: usize) -> (Self, Ca) {
        Self::of(count).with_tls()
    }

    /// The same with the timing [`CALM`].
    pub(crate) fn secure_calm(count: usize) -> (Self, Ca) {
        Self::of_with(count, CALM).with_tls()
    }

    fn with_tls(mut self) -> (Self, Ca) {
        let ca = Ca::new(self.dir.path().join("ca"));
        for member in &mut self.members {
            member.tls = Some(ca.member(&member.name, &self.ip.to_string()));
        }
        (self, ca)
    }

    /// This many members, running and ready.
    pub(crate) async fn up(count: usize) -> Self {
        Self::of(count).all_up().await
    }

    /// The same with the timing [`CALM`].
    pub(crate) async fn calm(count: usize) -> Self {
        Self::of_with(count, CALM).all_up().await
    }

    /// Starts all members and waits until they are ready.
    pub(crate) async fn all_up(mut self) -> Self {
        self.start_all();
        self.ready().await;
        self
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.dir.path().join("ipamd.toml")
    }

    /// Adds a stopped member, which will join the others.
    pub(crate) fn add(&mut self, name: &str, token: Option<PathBuf>) -> usize {
        let ports = self.free_ports(2);
        let mut member = Member::new(name, ports[0], ports[1], self.dir.path());
        member.join = Some((self.urls(), token));
        self.members.push(member);
        self.members.len() - 1
    }

    /// Free addresses of the cluster, other than those of its members, which may be stopped.
    pub(crate) fn free_ports(&self, count: usize) -> Vec<SocketAddr> {
        let own: Vec<SocketAddr> =
            self.members.iter().flat_map(|member| [member.client, member.peer]).collect();
        let mut free = free_ports(self.ip, count + own.len());
        free.retain(|address| !own.contains(address));
        free.truncate(count);
        free
    }

    /// Names and peer addresses, as every member is told them.
    pub(crate) fn peers(&self) -> Vec<(String, String)> {
        self.members
            .iter()
            .filter(|member| member.join.is_none())
            .map(|member| (member.name.clone(), member.peer_address()))
            .collect()
    }

    pub(crate) fn start(&mut self, at: usize) {
        let (config, peers) = (self.config(), self.peers());
        self.members[at].start(&config, &peers);
    }

    /// Starts all stopped members.
    pub(crate) fn start_all(&mut self) {
        for at in 0..self.members.len() {
            if !self.members[at].is_up() {
                self.start(at);
            }
        }
    }

    /// Waits until all that are up are ready.
    pub(crate) async fn ready(&mut self) {
        for member in self.members.iter_mut().filter(|member| member.is_up()) {
            let what = format!("{} is ready", member.name);
            until(&what, async || {
                if let Some(status) = member.ended() {
                    panic!("{} ended: {status}\n{}", member.name, member.tail());
                }
                member.is_ready().await
            })
            .await;
        }
    }

    /// Waits until one is ready.
    pub(crate) async fn ready_at(&self, at: usize) {
        until(&format!("{} is ready", self.members[at].name), async || self.members[at].is_ready().await)
            .await;
    }

    /// kill -9, all at once.
    pub(crate) fn kill_all(&mut self) {
        self.members.iter().for_each(Member::shoot);
        self.members.iter_mut().for_each(Member::kill);
    }

    /// SIGTERM; how it ended.
    pub(crate) async fn stop(&mut self, at: usize) -> ExitStatus {
        self.members[at].terminate();
        self.members[at].exit().await
    }

    /// Gives all members, which are stopped, other ports.
    pub(crate) fn move_away(&mut self) {
        let ports = self.free_ports(2 * self.members.len());
        for (member, ports) in self.members.iter_mut().zip(ports.chunks(2)) {
            (member.client, member.peer) = (ports[0], ports[1]);
        }
    }

    /// Gives a stopped member an empty disk.
    pub(crate) fn wipe(&self, at: usize) {
        std::fs::remove_dir_all(&self.members[at].data_dir).unwrap();
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        self.members.iter().map(Member::url).collect()
    }

    /// A client of all members.
    pub(crate) fn ask(&self) -> Client {
        Client::with(&self.urls(), &self.members[0].options()).unwrap()
    }

    /// A client of one member.
    pub(crate) fn at(&self, at: usize) -> Client {
        self.members[at].ask()
    }

    pub(crate) fn up_members(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.is_up())
    }

    /// Waits until all running members agree on the leader; returns its index.
    pub(crate) async fn leader(&self) -> usize {
        until("all agree on a leader", async || {
            let mut leaders = Vec::new();
            for member in self.up_members() {
                let shown = shown(member).await?;
                leaders.push(shown.leader.filter(|_| shown.stale_ms == 0));
            }
            leaders.dedup();
            let at = match leaders.as_slice() {
                [Some(name)] => self.members.iter().position(|member| member.name == *name),
                _ => None,
            };
            at.filter(|at| self.members[*at].is_up()).ok_or_else(|| format!("{leaders:?}"))
        })
        .await
    }

    /// Some member that is up and doesn't lead.
    pub(crate) async fn follower(&self) -> usize {
        let leader = self.leader().await;
        (0..self.members.len()).find(|at| *at != leader && self.members[*at].is_up()).unwrap()
    }

    /// Waits until all that are up have applied the same and are in the same state; how they show it.
    pub(crate) async fn settled(&self) -> Shown {
        until("all are in the same state", async || {
            let mut all: Vec<Shown> = Vec::new();
            for member in self.up_members() {
                all.push(shown(member).await?);
            }
            let state = |shown: &Shown| (shown.applied, shown.revision, shown.digest.clone());
            let states: Vec<_> = all.iter().map(state).collect();
            let same = states.iter().all(|one| *one == states[0]);
            all.pop().filter(|_| same).ok_or_else(|| format!("{states:?}"))
        })
        .await
    }

    /// Cluster as one member sees it, in any state.
    pub(crate) async fn shown(&self, at: usize) -> Shown {
        let member = &self.members[at];
        until(&format!("{} answers", member.name), async || shown(member).await).await
    }
}

async fn shown(member: &Member) -> Result<Shown, String> {
    let call = Call::get("/v1/cluster").within(Duration::from_secs(1));
    member.ask().call(call).await.map_err(|problem| format!("{}: {problem}", member.name))
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.kill_all();
        if std::thread::panicking() {
            self.members.iter().for_each(|member| println!("{}", member.tail()));
        }
    }
}

/// Ports that were free just before, at an address that no other process uses.
fn free_ports(ip: IpAddr, count: usize) -> Vec<SocketAddr> {
    let listeners: Vec<TcpListener> = (0..count).map(|_| TcpListener::bind((ip, 0)).unwrap()).collect();
    listeners.iter().map(|listener| listener.local_addr().unwrap()).collect()
}
