//! Tests of sessions and workloads at a server with scripted answers.

mod batches;
mod follow;
mod scripted;
mod separation;
mod sessions;
