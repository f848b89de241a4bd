//! Ordered maps and sets whose clones share their nodes, so that a snapshot of the state costs nothing.

mod map;
mod set;

pub(crate) use map::Tree;
pub(crate) use set::TreeSet;
