//! Inventory of the node: attachments without a container, and differences between journal and cluster.

pub mod command;
mod comparison;
mod containers;
mod possible_orphans;

pub use self::comparison::{compare, reconcile, take_newer};
pub use self::containers::{collect, observe};
pub use self::possible_orphans::PossibleOrphans;
