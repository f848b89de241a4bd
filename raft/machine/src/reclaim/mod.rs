//! Reclamation: heartbeats, orphans, ended workloads, detaching, releasing, expiring, quarantines and sticky
//! endpoints.

pub(crate) mod attachment;
pub(crate) mod detach;
pub(crate) mod event_budget;
pub(crate) mod expire;
pub(crate) mod heartbeat;
pub(crate) mod incarnation;
pub(crate) mod lease;
pub(crate) mod node;
pub(crate) mod orphan;
pub(crate) mod quarantine;
pub(crate) mod release;
pub(crate) mod sticky;
