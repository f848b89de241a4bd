//! Client of the part of CRI v1 that makes sandboxes.

mod client;
mod messages;

pub(crate) use client::Client;
pub(crate) use messages::{PodSandbox, PodSandboxConfig, PodSandboxMetadata, READY};
