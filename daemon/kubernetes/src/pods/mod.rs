//! Pods: the uids that live, and the facts that the servers are to judge.

mod queue;
mod reports;
mod uids;
mod view;

pub(crate) use self::reports::{Batch, Reports};
pub(crate) use self::uids::Uid;
pub(crate) use self::view::PodView;
