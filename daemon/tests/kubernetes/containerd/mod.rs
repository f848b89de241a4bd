//! Pods through Debian's containerd and runc over CRI, with an agent and without an API server. Needs root.

mod calls;
mod kills;
mod kubelet;
mod node;
mod pause;
mod spiderpool;
mod thousand;
