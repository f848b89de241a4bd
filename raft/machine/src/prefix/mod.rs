//! Prefixes: blocks cut from a pool or from another prefix.

mod blocks;
mod delegate;
mod end;
mod plan;

pub(crate) use self::delegate::*;
