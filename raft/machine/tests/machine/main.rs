//! Tests of the state machine through its public interface: no disk, no network, no clock.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "an error that is not handled is a failed test"
)]

mod access;
mod bounds;
mod churn;
mod epoch;
mod golden;
mod journal;
mod listed;
mod members;
mod meridio;
mod model;
mod revisions;
mod scenarios;
mod support;
mod work;
