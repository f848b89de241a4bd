//! Tests of the real programs: `ipamd`, `ipamctl` and the plugin, as others run them.
//!
//! One binary, so that all of this is linked once. A test is selected by its module: `cargo nextest run -p
//! ipamd kill::`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "these are tests"
)]

mod cluster;
mod contracts;
mod disks;
mod hosts;
mod kill;
mod kubernetes;
mod manifests;
mod meridio;
mod namespace;
mod namespace_operating;
mod runtimes;
mod shipped;
mod support;
