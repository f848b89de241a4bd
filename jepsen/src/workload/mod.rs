//! Workloads: clients that use the system as its users do, one file for each.
//!
//! A workload knows no fault and no checker: it writes a history.

mod admin;
mod adopted;
mod alloc_any;
mod alloc_specific;
mod attachment;
mod batch;
mod choice;
mod churn;
mod cni;
mod cni_end;
mod definition;
mod dual_stack;
mod exhaustion;
mod gc_probe;
mod holdings;
mod idempotence;
mod leases;
mod node;
mod prefixes;
mod reads;
mod registry;
mod requests;
mod resources;
mod server;
mod session;
mod sticky;
#[cfg(test)]
mod tests;
mod transactions;
mod wire;

pub use self::choice::PACE;
pub use self::definition::Workload;
pub use self::gc_probe::gateways;
pub use self::node::{Node, Plugin, PluginEnd};
pub use self::registry::all;
pub use self::server::{Seen, Server};
pub use self::session::{At, Phase, Servers, Session, add_detail};
