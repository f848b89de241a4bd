//! Suite that runs unchanged against a real API server: `deploy/docs/kubernetes-conformance.md`.

mod cluster;
mod kubeconfig;
mod patches;
mod watch;
