//! Renderer of the Kubernetes manifests: kustomize is the source, and the Helm chart is made of its output.

pub mod chart;
mod kustomize;
mod yaml;

pub use self::kustomize::{documents, folder, kubectl, render};
