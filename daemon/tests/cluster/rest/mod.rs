//! The conventions that every resource keeps: what clients of any language may count on.

mod allocations;
mod bulk;
mod contract;
mod dry_run;
mod lists;
mod patch;
mod repeat;
mod transactions;

use std::net::SocketAddr;

use serde_json::Value;

use crate::support::Cluster;
use crate::support::ask::make_pools;
use crate::support::raw::{Raw, ask};

/// A cluster with the two pools of the tests.
async fn with_pools(members: usize) -> Cluster {
    let cluster = Cluster::up(members).await;
    make_pools(&cluster.ask()).await;
    cluster
}

/// A read that must succeed.
async fn read(to: SocketAddr, path: &str) -> Raw {
    let answer = ask(to, "GET", path, &[], &Value::Null).await;
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    answer
}

/// IPv4 addresses that a member counts as given.
async fn counted(to: SocketAddr) -> u64 {
    let metrics = ask(to, "GET", "/metrics", &[], &Value::Null).await;
    let given = "ipamd_allocations_total{family=\"ipv4\",outcome=\"given\"} ";
    metrics.body.lines().find_map(|line| line.strip_prefix(given)?.parse().ok()).unwrap_or_default()
}
