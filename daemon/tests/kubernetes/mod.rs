//! Pods of Kubernetes: what a node does for them.

mod containerd;
