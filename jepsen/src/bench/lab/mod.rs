//! Systems under load: clusters of ipamd and of etcd, a node agent, and CNI plugins.

mod agent;
mod ipamd;
mod peer;
mod place;
mod plugin;
mod subject;
mod syscalls;

pub(super) use self::ipamd::Ipamd;
pub(super) use self::place::{Lab, Programs};
pub(super) use self::plugin::run;
pub(super) use self::subject::Subject;
pub(super) use self::syscalls::count;
