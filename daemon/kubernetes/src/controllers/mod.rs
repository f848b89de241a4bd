//! Controllers: their wanted replicas, and the controllers that the servers know.

mod known;
mod view;

pub(crate) use self::known::{Assessment, ControllerId, Known};
pub(crate) use self::view::{ControllerKey, ControllerView, Work};
