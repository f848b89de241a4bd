//! Renderer of the Kubernetes manifests: the Helm chart is generated from the output of kustomize.
//!
//! The definitions of custom resources are generated from the OpenAPI document. The definitions of the pool
//! kinds for Cluster API are generated from their Rust types.

pub mod chart;
pub mod cluster_api;
pub mod definitions;
mod kustomize;
mod nmstate;
mod schema;
mod yaml;

pub use self::kustomize::{documents, folder, kubectl, render};
