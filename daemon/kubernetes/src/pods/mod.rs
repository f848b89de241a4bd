//! Pods: the existing uids, and the facts that the servers judge.

mod queue;
mod reports;
mod uids;
mod view;

pub(crate) use self::reports::{Batch, Reports};
pub(crate) use self::uids::Uid;
pub(crate) use self::view::PodView;
