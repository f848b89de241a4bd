//! Renderer of the Kubernetes manifests: kustomize is the source, and the Helm chart is made of its output.
//!
//! The definitions of custom resources are made of the OpenAPI document, and those of the pool kinds for
//! Cluster API of their types.

pub mod chart;
pub mod cluster_api;
pub mod definitions;
mod kustomize;
mod nmstate;
mod schema;
mod yaml;

pub use self::kustomize::{documents, folder, kubectl, render};
