//! Tests of the plugin as a runtime runs it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "these are tests")]

mod install;
mod main_plugins;
mod outages;
mod support;
mod vectors;
