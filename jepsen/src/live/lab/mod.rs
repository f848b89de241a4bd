//! Lab: members as real processes on disks of their own, in hosts of one network, with faults.
//!
//! [`Lab`] starts the members and executes the faults of members and of the network. The module `live/node`
//! executes the faults of nodes.

mod access;
mod cluster;
mod exits;
mod faults;
mod joining;
mod member;
mod outside;
mod plan;
mod reaper;
mod servers;
mod settings;
mod system;

pub use self::cluster::Lab;
pub use self::plan::{Plan, Programs};
pub(crate) use self::reaper::mark;
pub use self::servers::Endpoints;
