//! Suite that runs unchanged against a real API server: `deploy/docs/kubernetes-conformance.md`.

mod apply;
mod cascade;
mod cluster;
mod custom;
mod kubeconfig;
mod kubectl;
mod leases;
mod lists;
mod objects;
mod patches;
mod schema;
