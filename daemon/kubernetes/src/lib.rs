//! Watcher of a Kubernetes cluster, for one realm.
//!
//! It mirrors nodes and namespaces, follows the replicas and the end of controllers, and reports pods that
//! are gone. It knows the types of `ipam-api` and the operations of the REST API ([`Servers`]) and nothing
//! else, so that the same code runs in the leader and in a remote cluster.
//!
//! Facts are about uids: a uid that is gone stays gone. A fact is a deletion that a watch reported, or an
//! absence in two scans that a quorum read confirms. A list without an object is no fact. Before the pods and
//! nodes are listed, nothing is sent that frees an address; and the servers decide what a fact means.
//!
//! If a setting asks for it, custom resources are applied to the servers. Their status is all that the
//! watcher writes to Kubernetes; they are no store, and nothing else reads them.
//!
//! Not here: the choice of a leader, and verdicts on addresses.

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
