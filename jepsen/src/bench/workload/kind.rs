//! Workloads by name: their pools, and their clients at ipamd and at etcd.

use std::net::SocketAddr;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::allocate::Allocate;
use super::bulk::{Bulk, fill};
use super::churn::Churn;
use super::etcd::{Get, Put, channels};
use super::read::Read;
use super::swap::Swap;
use crate::bench::lab::{Ipamd, Lab, Subject};
use crate::bench::load::{Client, Process};

/// Addresses of the nearly full pool (98 % of a /20) that are allocated before the load.
const NEARLY_FULL: u64 = 4094 * 98 / 100;
/// Number of pools that labels select from.
const SELECTED_POOLS: usize = 64;

/// Operations of the clients of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::bench) enum Workload {
    /// Allocate one address of a large pool each time; etcd: put a key of 256 bytes.
    Allocate,
    /// The same; etcd: put the key in a transaction, if it is absent.
    Create,
    /// Allocate and release one address of a large pool in turn.
    Churn,
    /// The same in one /24; etcd: compare-and-swap on one object of 4 KiB.
    HotPool,
    /// Allocation and release in a pool that is 98 % full.
    NearlyFull,
    /// Allocate without a pool; labels choose among 64.
    Selectors,
    /// Allocate 1,000 addresses with each request.
    Bulk,
    /// Read single addresses, linearizable; etcd: get.
    Reads,
    /// Read single addresses, stale; etcd: serializable get.
    StaleReads,
}

impl Workload {
    /// Prepares a system, and returns clients of its leader and the processes of the system.
    pub(in crate::bench) async fn clients(
        self,
        lab: &mut Lab,
        subject: Subject,
        count: usize,
    ) -> Result<(Vec<Box<dyn Client>>, Vec<Process>)> {
        match subject {
            Subject::Ipamd | Subject::Against => {
                let cluster = lab.ipamd(subject).await?;
                Ok((self.of_ipamd(cluster, count).await?, cluster.processes().await?))
            }
            Subject::Etcd => {
                let etcd = lab.etcd().await?;
                let server = *etcd.servers().await?.first().context("no server")?;
                Ok((self.of_etcd(server, count).await?, etcd.processes().await?))
            }
            Subject::HostLocal => bail!("host-local has no clients"),
        }
    }

    /// Clients at the leader of a cluster of ipamd.
    pub(in crate::bench) async fn of_ipamd(
        self,
        cluster: &Ipamd,
        count: usize,
    ) -> Result<Vec<Box<dyn Client>>> {
        self.prepare(cluster).await?;
        let server = *cluster.servers().await?.first().context("no server")?;
        if matches!(self, Self::Reads | Self::StaleReads) {
            return Read::clients(cluster, count, self == Self::StaleReads).await;
        }
        let client = |number: usize| -> Box<dyn Client> {
            match self {
                Self::Churn => Box::new(Churn::new(server, "large")),
                Self::HotPool => Box::new(Churn::new(server, "hot")),
                Self::NearlyFull => Box::new(Churn::new(server, "nearly-full")),
                Self::Selectors => {
                    let labels = json!({"app": app(number % SELECTED_POOLS)});
                    Box::new(Allocate::with_labels(server, &[], &labels))
                }
                Self::Bulk => Box::new(Bulk::new(server, "large")),
                Self::Allocate | Self::Create | Self::Reads | Self::StaleReads => {
                    Box::new(Allocate::new(server, &["large"]))
                }
            }
        };
        Ok((0..count).map(client).collect())
    }

    /// Creates the pools of the workload, unless they exist.
    async fn prepare(self, cluster: &Ipamd) -> Result<()> {
        match self {
            Self::HotPool => cluster.make_pool("hot", "11.0.0.0/24", &Value::Null).await,
            Self::NearlyFull => {
                cluster.make_pool("nearly-full", "11.1.0.0/20", &Value::Null).await?;
                let held = cluster.allocated("nearly-full").await?;
                fill(cluster, "nearly-full", NEARLY_FULL.saturating_sub(held)).await
            }
            Self::Selectors => {
                for number in 0..SELECTED_POOLS {
                    let more = json!({"default": true, "endpoint_selector": format!("app={}", app(number))});
                    let cidr = format!("12.{number}.0.0/16");
                    cluster.make_pool(&app(number), &cidr, &more).await?;
                }
                Ok(())
            }
            Self::Allocate | Self::Create | Self::Churn | Self::Bulk | Self::Reads | Self::StaleReads => {
                Ok(())
            }
        }
    }

    async fn of_etcd(self, server: SocketAddr, count: usize) -> Result<Vec<Box<dyn Client>>> {
        if matches!(self, Self::Reads | Self::StaleReads) {
            return Get::clients(server, count, self == Self::StaleReads).await;
        }
        let channels = channels(server, count).await?;
        if self == Self::HotPool {
            Swap::prepare(channels.first().context("no client")?).await?;
        }
        let mut clients: Vec<Box<dyn Client>> = Vec::new();
        for channel in channels {
            clients.push(match self {
                Self::Allocate => Box::new(Put::new(channel)),
                Self::Create => Box::new(Put::creating(channel)),
                Self::HotPool => Box::new(Swap::new(channel)),
                other => bail!("etcd has no counterpart of {other:?}"),
            });
        }
        Ok(clients)
    }
}

fn app(number: usize) -> String {
    format!("app-{number}")
}
