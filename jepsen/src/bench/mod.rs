//! Load generator, and comparison of ipamd with etcd, host-local and an older build on one machine.

mod arguments;
mod compare;
mod lab;
mod load;
mod wire;
mod workload;

pub use self::arguments::{Arguments, run};
