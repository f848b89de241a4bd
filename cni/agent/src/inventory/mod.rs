//! Inventory of the node: attachments without a container, and differences between journal and cluster.

pub mod command;
mod comparison;
mod containers;

pub use self::comparison::{compare, reconcile, take_newer};
pub use self::containers::{collect, observe};
