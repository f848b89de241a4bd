//! Watcher of a Kubernetes cluster, in the leader of real members.

mod claims;
mod controllers;
mod custom;
mod hosts;
mod mirror;
mod nodes;
mod pods;
mod realms;
mod remote;
pub(super) mod scene;
