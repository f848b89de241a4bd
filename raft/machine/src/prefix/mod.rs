//! Prefixes: blocks cut from a pool or from another prefix.

mod delegate;
mod end;
mod listed;
mod plan;
mod waiting;
