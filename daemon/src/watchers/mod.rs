//! Watchers of Kubernetes clusters and providers of Cluster API, in the leader and in processes of their own.

pub mod cluster_api;
mod leader;
mod member;
mod news;
mod process;
mod provider;
pub mod remote;
mod watcher;

pub use self::leader::{Sections, run};
