//! Preflight: the capabilities of the machine that live runs need, each of them tried.

mod capability;
mod disks;
mod network;
mod processes;
mod room;
mod scratch;

pub use self::capability::{Capability, check};
