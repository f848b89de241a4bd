//! `ipamd dev`: a whole cluster on this machine for a first trial.
//!
//! It runs three `ipamd serve` processes, each with its own directory, and a network namespace. The interface
//! of the namespace gets its addresses through the `bridge` plugin and `ipam-cni`.

mod cluster;
mod console;
mod container;
mod demo;
mod ports;
mod report;
mod run;

pub use self::console::DevError;
pub use self::container::{Container, Lab};
pub use self::run::{Arguments, main};
