//! Watcher of a Kubernetes cluster, for one realm.
//!
//! The watcher mirrors nodes and namespaces, follows the replicas and the end of controllers, and reports
//! deleted pods. It depends only on the types of `ipam-api` and the operations of the REST API ([`Servers`]),
//! so that the same code runs in the leader and in a remote cluster.
//!
//! Facts are about uids, since a deleted uid never exists again. A fact is a deletion that a watch reported,
//! or an absence in two scans that a quorum read confirms. A list without an object is no fact. Before the
//! pods and nodes are listed, no request is sent that frees an address; and the servers decide what a fact
//! means.
//!
//! If a setting requires it, custom resources are applied to the servers. The watcher writes to Kubernetes
//! only their statuses and the policies of kubernetes-nmstate. Custom resources are no store, and nothing
//! else reads them.
//!
//! Out of scope: the election of the leader, and decisions about addresses.

mod absent;
mod backoff;
mod cluster_api;
mod connection;
mod controllers;
mod custom;
mod follow;
mod host_policies;
mod listed;
mod mirror;
mod node_pools;
mod objects;
mod pods;
mod provider;
mod rows;
mod servers;
mod settings;
mod shared;
mod status;
mod tasks;
mod watch;

pub use self::provider::{ProviderCounts, ProviderSettings, ProviderStatus, provide};
pub use self::servers::{Remote, Servers};
pub use self::settings::Settings;
pub use self::status::{Counts, Status};
pub use self::watch::watch;
