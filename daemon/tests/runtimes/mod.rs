//! Container runtimes of Debian (containerd, podman) on a node with an agent: kills at bad moments, and
//! containers that are removed without a DEL. Needs root.

mod containerd;
mod image;
mod moment;
mod node;
mod podman;
mod sandbox;
