//! Members of the cluster: list, join, change, transfer of leadership.

mod change;
mod join;
mod list;
mod plan;

pub(in crate::http) use self::list::routes;
