//! Watchers of Kubernetes clusters, in the leader and in a process of their own.

mod leader;
mod news;
pub mod remote;

pub use self::leader::run;
