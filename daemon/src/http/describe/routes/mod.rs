//! The one table of routes. The router, the `OpenAPI` document and the pages under `/docs` are made from it.

mod agents;
mod backup;
mod collection;
mod controllers;
mod host_policies;
mod leases;
mod maps;
mod members;
mod named;
mod parameters;
mod pods;
mod prefixes;
mod route;
mod table;
mod workloads;

pub(in crate::http) use self::route::Access;
#[cfg(test)]
pub(super) use self::route::Condition;
pub(super) use self::route::{ALWAYS, Body, Route};
pub(in crate::http) use self::table::{handlers, routes};
