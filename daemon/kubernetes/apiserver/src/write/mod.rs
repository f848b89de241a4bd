//! Writes of objects.

mod admit;
pub(crate) mod apply;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod object;
pub(crate) mod scale;
pub(crate) mod strategy;
pub(crate) mod update;
