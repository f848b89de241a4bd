//! Real interfaces, through real main plugins, from a real cluster. Needs root, and the plugins of
//! containernetworking-plugins; where they are missing it fails, and says what to install.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "these are tests"
)]

#[path = "../support/mod.rs"]
mod support;

mod containers;
mod dev;
mod shipped;
mod wire;
