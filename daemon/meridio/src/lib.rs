//! Front end for clients of Meridio: its gRPC service `ipam.v1.Ipam` over the prefixes of ipamd.
//!
//! A trench has one pool for each family. A conduit is a prefix of that pool, a node a prefix of its conduit,
//! and a child one address of its node. Each call becomes a request of the REST API, which decides it.
//!
//! **Invariants:** this crate decides nothing about addresses and keeps no state about them, so each member
//! gives the same answers. It accepts no connections; the daemon does, and identifies the callers.

mod allocate;
mod child;
mod deadline;
mod health;
mod ipam;
mod nsp;
mod places;
mod prefixes;
mod router;
mod servers;
mod settings;
mod status;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod trench;
pub mod wire;

pub use self::nsp::{Followed, Tls, follow_conduits};
pub use self::router::Routers;
pub use self::servers::{Caller, Servers};
pub use self::settings::{FamilySettings, NspSettings, Settings};
pub use self::trench::{Unprepared, prepare};
