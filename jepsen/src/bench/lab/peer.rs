//! Three members of etcd through native gRPC. The processes are those of the failover comparison.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::bench::load::Process;
use crate::failover::{Etcd, System as _};

/// Cluster of etcd. Dropping it kills all of its processes.
pub(in crate::bench) struct Peer(Etcd);

impl Peer {
    /// Starts a cluster in a new directory, and waits until it serves.
    pub(in crate::bench) async fn start(dir: &Path, unpacked: &Path) -> Result<Self> {
        let mut etcd = Etcd::start(dir, unpacked)?;
        etcd.prepare().await.context("etcd does not start")?;
        Ok(Self(etcd))
    }

    /// Addresses of all members for clients, the leader's first.
    pub(in crate::bench) async fn servers(&self) -> Result<Vec<SocketAddr>> {
        let leader = self.0.leader().await?;
        let mut servers = self.0.client_addresses();
        servers.rotate_left(leader);
        Ok(servers)
    }

    /// All running members, as leader and followers.
    pub(in crate::bench) async fn processes(&self) -> Result<Vec<Process>> {
        let leader = self.0.leader().await?;
        let name = |at| if at == leader { "leader" } else { "follower" };
        let running = self.0.pids().into_iter().enumerate();
        let running = running.filter_map(|(at, pid)| Some(Process { name: name(at).to_owned(), pid: pid? }));
        Ok(running.collect())
    }
}
