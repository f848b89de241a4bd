//! Renderer of the Kubernetes manifests: kustomize is the source, and the Helm chart is made of its output.
//!
//! The definitions of custom resources are made of the OpenAPI document.

pub mod chart;
pub mod definitions;
mod kustomize;
mod yaml;

pub use self::kustomize::{documents, folder, kubectl, render};
