//! Writes of objects.

pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod object;
mod strategy;
pub(crate) mod update;
