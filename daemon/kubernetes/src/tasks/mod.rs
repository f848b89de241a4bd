//! Tasks of a watcher: the streams that fill the views, and the requests that follow from them.

mod confirm;
mod controllers;
mod custom;
mod host_policies;
mod host_policy_ends;
mod host_policy_write;
mod leaving;
mod mirror;
mod node_pool_status;
mod node_pools;
mod pods;
mod publish;
mod reconcile;
mod reports;
mod scan;
mod streams;
mod write;

pub(crate) use self::controllers::follow_controllers;
pub(crate) use self::custom::apply_custom;
pub(crate) use self::host_policies::roll_out;
pub(crate) use self::leaving::reclaim_nodes;
pub(crate) use self::mirror::{Place, mirror};
pub(crate) use self::node_pools::apply_node_pools;
pub(crate) use self::pods::send_facts;
pub(crate) use self::reports::report_pods;
pub(crate) use self::scan::scan;
pub(crate) use self::streams::stream;
