//! Kubernetes API server of the tests: any object over real HTTP, with lists, watches, and faults on demand.
//!
//! It has the parts of the protocol that clients of this project use: one counter of resource versions,
//! pages, bookmarks, 410, 409, patches, server-side apply, subresources, finalizers, garbage collection,
//! custom resources, tables, bearer tokens and roles. It also serves the kinds of Cluster API with their
//! webhooks. A difference from the real API server is a defect of
//! this crate: `deploy/docs/kubernetes-conformance.md`.
//!
//! **Invariant:** no shipped program depends on this crate.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a defect of this crate fails tests, and nothing else"
)]

mod access;
mod clock;
mod cluster_api;
mod custom;
mod discovery;
mod faults;
mod form;
mod garbage;
mod holds;
mod list;
mod merge;
mod openapi;
mod options;
mod patch;
mod path;
mod resources;
mod routes;
mod select;
mod server;
mod status;
mod store;
mod table;
mod tls;
mod verbs;
mod watch;
mod write;

pub use self::cluster_api::{ClusterApi, ClusterApiVersion};
pub use self::faults::{Fault, Hostility};
pub use self::holds::Stage;
pub use self::resources::Resource;
pub use self::server::{ApiServer, Request};
