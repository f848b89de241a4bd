//! Checks of the rules and dashboards in `deploy/monitoring/`, with promtool and against the metrics.
//!
//! **Invariant:** each check is a function from texts to complaints; only `check` reads files and runs
//! promtool.

mod check;
mod dashboards;
mod document;
mod metrics;
mod promql;
mod rules;
mod runbook;
mod tested;

pub(crate) use self::check::test;
