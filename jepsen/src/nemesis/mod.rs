//! Nemeses: seeded sources of faults, one file for each.
//!
//! A nemesis decides and does nothing: it returns faults as values. The system under test carries them out.

mod agents;
mod choice;
mod clock;
mod corruption;
mod costly;
mod cpu;
mod definition;
mod failing_disk;
mod fault;
mod full_disk;
mod isolate_client;
mod kill;
mod membership;
mod nodes;
mod overlap;
mod packets;
mod partition;
mod pause;
mod power;
mod probes;
mod registry;
mod restore;
mod rolling_kill;
mod slow_disk;
mod stalled_disk;
mod system;
mod targets;
#[cfg(test)]
mod tests;
mod transfer;
mod upgrade;
mod view;
mod wipe;

pub use self::definition::Nemesis;
pub use self::fault::{Change, Corruption, Cost, Cut, Fault, Kind, Link, Moment};
pub use self::registry::all;
pub use self::system::System;
pub use self::view::View;
