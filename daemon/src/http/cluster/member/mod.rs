//! Members of the cluster: list, join, change, transfer of leadership.

pub(in crate::http) mod change;
pub(in crate::http) mod join;
pub(in crate::http) mod list;
mod plan;
