//! The Kubernetes manifests without a kubelet: their containers run with exactly their commands, mounts and
//! rights. Needs root, runc, and the tools of `cargo xtask test --only packages`.

mod container;
mod deployment;
mod kubelet;
mod lab;
mod network;
mod page;
mod pod;
