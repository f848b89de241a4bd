//! Nemeses: seeded sources of faults, one file for each.
//!
//! A nemesis decides and does nothing: it returns faults as values. The system under test carries them out.

mod definition;
mod fault;
mod registry;
mod system;
mod view;

pub use self::definition::Nemesis;
pub use self::fault::{Change, Corruption, Cost, Cut, Fault, Kind, Link, Moment};
pub use self::registry::all;
pub use self::system::System;
pub use self::view::View;
