//! Workloads: clients of ipamd over HTTP, and of etcd over gRPC.

mod addresses;
mod allocate;
mod bulk;
mod churn;
mod etcd;
mod heartbeat;
mod kind;
mod million;
mod names;
mod read;
mod restart;
mod swap;
mod template;

pub(super) use self::allocate::Allocate;
pub(super) use self::etcd::Put;
pub(super) use self::heartbeat::Heartbeat;
pub(super) use self::kind::Workload;
pub(super) use self::million::{burst_clients, million, resident_bytes};
