//! Interfaces of a host that the agent configures: sections `[host]` and `[[interface]]`.
//!
//! Order of a start: the journal is read, and its addresses are applied before any server answers. Then the
//! addresses are requested from the servers, new ones are probed, and the difference is applied and
//! announced.
//!
//! **Invariants:** the agent changes and removes only its own additions: addresses and routes with its
//! protocol number, and links and settings in the journal. The journal describes each change before it is
//! applied to the kernel, so that an agent that is killed between two changes continues.

mod announcement;
pub mod binding;
pub mod command;
mod confirmation;
mod conflict;
#[cfg(test)]
mod fake;
mod follow;
#[cfg(test)]
mod follow_tests;
mod journal;
mod kernel;
pub mod manager;
mod netlink;
mod plan;
mod release;
mod rendering;
mod request;
mod session;
mod status;
mod target;
#[cfg(test)]
mod tests;

pub use self::follow::{follow, hold};
pub use self::netlink::Netlink;
pub use self::session::Session;
pub use self::status::{HostState, HostStatus};
