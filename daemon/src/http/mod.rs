//! HTTP API: handlers that parse, call the replicated state and render, without rules of their own.

mod admission;
mod allocation;
mod cluster;
pub mod connection;
mod convert;
mod describe;
mod event;
#[cfg(feature = "testing")]
pub mod fuzzing;
mod list;
mod report;
pub mod request;
mod resource;
pub mod router;
mod transaction;
