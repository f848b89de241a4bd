//! Network of a live run: hosts as network namespaces that a user-space switch joins, without an uplink.
//!
//! Each host has a TAP device `eth0`. The switch forwards Ethernet frames between these devices and impairs
//! them: cuts of ordered pairs, loss, delay, duplication, reordering, corruption, and blindness of probes.

mod count;
mod fabric;
mod frame;
mod held;
mod host;
mod impairment;
mod namespace;
mod pump;
mod rules;
mod segment;
mod switch;
#[cfg(test)]
mod tests;

pub use self::count::{Count, Counters, Flow};
pub use self::host::Host;
pub use self::impairment::Impairment;
pub(crate) use self::namespace::Namespace;
pub use self::segment::Network;
pub use crate::nemesis::Link;
