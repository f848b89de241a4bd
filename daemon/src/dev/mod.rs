//! `ipamd dev`: a whole cluster on this machine for a first trial.
//!
//! Three real `ipamd serve` processes with their own directories, and a network namespace whose interface
//! gets its addresses through the real `bridge` plugin and ours.

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
