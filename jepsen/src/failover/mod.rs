//! Failover: the time without accepted writes after the loss of a leader, beside etcd on the same machine.
//!
//! etcd is driven through its JSON gateway (`/v3/kv/put`), so that no gRPC client is needed: both systems are
//! written to by the same client code over HTTP.

mod arguments;
mod clients;
mod etcd;
mod gap;
mod ipamd;
mod rounds;
mod system;
mod table;

pub use self::arguments::{Arguments, run};
pub(crate) use self::etcd::Etcd;
pub(crate) use self::ipamd::Ipamd;
pub(crate) use self::rounds::{Fault, round};
pub(crate) use self::system::System;
