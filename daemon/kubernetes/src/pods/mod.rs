//! Pods: the uids that live, and the facts that the servers are to judge.

mod queue;
mod uids;
mod view;

pub(crate) use self::view::PodView;
