//! Common parts of the daemon's tests: real members on loopback, and requests to them.

pub(crate) mod agent;
pub(crate) mod ask;
pub(crate) mod cgroup;
pub(crate) mod clocks;
pub(crate) mod cluster;
pub(crate) mod held;
pub(crate) mod http2;
pub(crate) mod image;
pub(crate) mod live;
pub(crate) mod machine;
pub(crate) mod member;
pub(crate) mod plugin;
pub(crate) mod programs;
pub(crate) mod proxy;
pub(crate) mod random;
pub(crate) mod raw;
pub(crate) mod tls;
pub(crate) mod wait;

pub(crate) use cluster::Cluster;
pub(crate) use wait::{LONG, until};
