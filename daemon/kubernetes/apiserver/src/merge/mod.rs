//! Merges by the types of fields: server-side apply, its managers, and strategic merge patches.

mod apply;
mod managers;
mod paths;
mod shape;
mod strategic;

pub(crate) use self::apply::{Applier, apply};
pub(crate) use self::managers::record;
pub(crate) use self::shape::Shape;
pub(crate) use self::strategic::strategic_merge;
