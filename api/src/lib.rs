//! Wire format of ipamd, and the values that users type.
//!
//! Value types with their validation (names, addresses, ranges), the resources as HTTP shows them, the
//! catalogue of problems, every limit, every outward name, and the HTTP client that the plugin, `ipamctl`
//! and the tests share.
//!
//! **Invariant:** nothing here decides anything about allocation, and nothing here enters the Raft log
//! except value types (names, addresses, ranges, problem codes). The resources are JSON for people; the
//! log has its own, versioned types in `ipam-raft`.

#![warn(missing_docs)]

pub mod access;
pub mod address;
pub mod agent;
pub mod annotations;
#[cfg(feature = "backup")]
pub mod backup;
pub mod brand;
pub mod certificate;
pub mod client;
pub mod cluster;
pub mod cluster_api;
pub mod event;
pub mod explain;
pub mod host_policy;
pub mod kubernetes;
pub mod limits;
pub mod mac;
pub mod name;
mod named;
pub mod node_report;
pub mod place;
pub mod pod;
pub mod probe;
pub mod problem;
pub mod process;
pub mod reclaim;
pub mod render;
pub mod request;
#[cfg(feature = "names")]
pub mod resolve;
pub mod resource;
#[cfg(feature = "schema")]
pub mod schema;
pub mod screen;
pub mod selector;
pub mod spiffe;
pub mod strict;
pub mod time;
#[cfg(feature = "tls")]
pub mod tls;
pub mod token;
pub mod transaction;
pub mod workload;

pub use address::{AddressRange, Family, RangeSet};
pub use name::{Name, NamePattern, ObjectName};
pub use problem::{Code, Problem};
pub use selector::Selector;
