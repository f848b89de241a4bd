//! Subcommands of `ipam-jepsen`, one file each.

pub mod check;
mod child;
mod judge;
pub mod list;
pub mod live;
pub mod matrix;
mod names;
mod outcome;
pub mod preflight;
pub mod report;
pub mod sim;
pub mod soak;
pub mod suite;
mod time;

pub use self::outcome::Outcome;
