//! What the daemon's tests share: real members on loopback, and ways to ask them.

pub(crate) mod ask;
pub(crate) mod clocks;
pub(crate) mod cluster;
pub(crate) mod member;
pub(crate) mod plugin;
pub(crate) mod programs;
pub(crate) mod random;
pub(crate) mod raw;
pub(crate) mod tls;
pub(crate) mod wait;

pub(crate) use cluster::Cluster;
pub(crate) use wait::{LONG, until};
