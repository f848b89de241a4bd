//! What the daemon's tests share: real members on loopback, and ways to ask them.

#![allow(dead_code, reason = "each test binary uses its own part")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "these are tests"
)]

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
