//! Kubernetes: pods, their runtimes and their API server.

mod api_server;
mod cluster_api;
mod containerd;
mod outages;
mod pods;
mod scene;
mod watcher;
