//! Watchers of Kubernetes clusters and providers of Cluster API, on the leader or in own processes.

pub mod cluster_api;
mod leader;
mod member;
mod news;
mod process;
mod provider;
pub mod remote;
mod watcher;

pub use self::leader::{Sections, run};
