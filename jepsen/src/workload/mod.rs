//! Workloads: clients that use the system as its users do, one file for each.
//!
//! A workload knows no fault and no checker: it writes a history.

mod definition;
mod node;
mod registry;
mod server;
mod session;

pub use self::definition::Workload;
pub use self::node::{Node, Plugin, PluginEnd};
pub use self::registry::all;
pub use self::server::Server;
pub use self::session::{At, Phase, Servers, Session};
