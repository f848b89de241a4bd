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
mod adopting;
mod automatic;
mod backup;
mod bad_bodies;
mod bad_input;
mod bad_starts;
mod catching_up;
mod check_config;
mod check_journal;
mod clocks;
mod command_files;
mod command_line;
mod command_output;
mod command_watch;
mod command_words;
mod events;
mod explain;
mod failover;
mod forming;
mod hostile;
mod interfaces;
mod late;
mod leases;
mod maps;
mod members;
mod nodes_and_namespaces;
mod pauses;
mod pool_gateway;
mod prefixes;
mod quotas;
mod resources;
mod rest;
mod schema;
mod secure;
mod serving;
mod slow_reader;
mod spiderpool;
mod sticky;
mod takers;
mod vectors;
mod waiting;
mod watching;
