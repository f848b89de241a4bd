//! Tests of sessions and workloads at a server that answers as a test wants.

mod batches;
mod follow;
mod scripted;
mod separation;
mod sessions;
