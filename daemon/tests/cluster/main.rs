//! Clusters of real processes on loopback, asked over HTTP by the decent and the indecent.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "these are tests"
)]

#[path = "../support/mod.rs"]
mod support;

mod access;
mod backup;
mod bad_bodies;
mod bad_input;
mod bad_starts;
mod command_files;
mod command_line;
mod events;
mod forming;
mod hostile;
mod resources;
mod rest;
mod secure;
mod serving;
mod vectors;
mod watching;
