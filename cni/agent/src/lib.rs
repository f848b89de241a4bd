//! Agent of a node: one small process between the CNI plugin and the cluster.
//!
//! The agent serves `ipam-cni` on a unix socket with the paths of the servers' HTTP API, and forwards
//! requests over pooled connections, with TLS and the node's token. A journal on disk has every attachment of
//! the node: a DEL is answered without a server and delivered later, and attachments whose container is
//! removed are found and released. One heartbeat reports readiness, boot, inventory and links, and renews the
//! node's leases. Addresses are probed before the plugin gets them if the cluster requires that, and on its
//! request. In Kubernetes, the agent watches the pods of its node, adds their facts to the requests of their
//! ADDs, and reports failed ADDs as events.
//!
//! Deliberate limits:
//!
//! * It decides nothing about addresses: the servers do, and check each release against the allocation ids
//!   that the agent observed.
//! * It represents one node only, and replaces the node of each request by its own.
//! * It changes interfaces, addresses and routes only if sections `[[interface]]` request it, and then
//!   only its own additions. It needs CAP_NET_ADMIN for that, CAP_NET_RAW for probes of addresses, and
//!   otherwise no capability.

pub mod attachment;
mod backoff;
pub mod boot;
pub mod cluster;
pub mod command_line;
pub mod config;
pub mod doctor;
#[cfg(test)]
mod fakes;
pub mod heartbeat;
pub mod host;
pub mod host_config;
pub mod identity;
pub mod inventory;
pub mod journal;
pub mod kubernetes;
pub mod listing;
pub mod netns;
pub mod node;
mod output;
pub mod pod_add;
pub mod pods;
pub mod possible_orphans;
pub mod probe;
pub mod probing;
pub mod release;
pub mod seeded;
pub mod serve;
pub mod socket;
pub mod status;
#[cfg(feature = "testing")]
pub mod testing;
pub mod turns;
