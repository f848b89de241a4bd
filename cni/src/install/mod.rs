//! Commands that put the plugin and its network configurations on a node, and remove them.

mod agent;
mod command;
mod file;
mod removal;

pub use self::command::{HELP, answer};
