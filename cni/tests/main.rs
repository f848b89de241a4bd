//! Tests of the plugin as a runtime runs it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "these are tests"
)]

mod containerd;
mod install;
mod main_plugins;
mod outages;
mod support;
mod vectors;
