//! Workloads: clients that use the system as its users do, one file for each.
//!
//! A workload knows no fault and no checker: it writes a history.

mod alloc_any;
mod alloc_specific;
mod choice;
mod definition;
mod holdings;
mod node;
mod registry;
mod requests;
mod resources;
mod server;
mod session;

pub use self::choice::PACE;
pub use self::definition::Workload;
pub use self::node::{Node, Plugin, PluginEnd};
pub use self::registry::all;
pub use self::server::{Seen, Server};
pub use self::session::{At, Phase, Servers, Session, add_detail};
