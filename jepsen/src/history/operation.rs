//! Operation: one line of a history.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::process::Process;
use crate::nemesis::Fault;

/// One line of a history, as in Jepsen: the begin or the end of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// Position in the history, from 0.
    pub index: u64,
    /// Nanoseconds since the run began, by a monotonic clock.
    #[serde(rename = "time")]
    pub time_ns: u64,
    /// Client, or the nemesis.
    pub process: Process,
    /// Begin, or kind of the end.
    #[serde(rename = "type")]
    pub kind: Type,
    /// Function that the operation calls.
    pub f: Function,
    /// Arguments and, at the end, results.
    pub value: Value,
}

/// Begin of an operation, or the kind of its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Type {
    /// The operation begins.
    Invoke,
    /// The operation took effect, and its results are known.
    Ok,
    /// The operation surely took no effect.
    Fail,
    /// The operation may or may not have taken effect, now or at any later time.
    Info,
}

/// Function of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Function {
    /// Allocation of addresses for an endpoint by REST.
    Allocate,
    /// Release of allocations or of an endpoint by REST.
    Release,
    /// Renewal of leases.
    Renew,
    /// CNI ADD by the real plugin.
    Add,
    /// CNI DEL by the real plugin.
    Del,
    /// CNI CHECK by the real plugin.
    Check,
    /// Request of an address that waits until one is free.
    Claim,
    /// Delegation of a prefix.
    Delegate,
    /// Return of a prefix.
    Return,
    /// Several writes, all or none.
    Transaction,
    /// Read of one address or one endpoint.
    Read,
    /// Read of a list, all pages.
    List,
    /// Events from a revision on: a page or a stream.
    Events,
    /// Write of a named resource: network, subnet, pool, reservation.
    Put,
    /// Deletion of a named resource.
    Delete,
    /// Observation that the endpoint farm answers, or no longer answers, at addresses.
    Farm,
    /// Fault: its begin and its end are operations of the nemesis.
    Fault,
}

/// Arguments and results of an operation. Members that do not apply are absent.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Value {
    /// Name of the workload.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub workload: String,
    /// Member to which the client sends the request first; absent for a client of all members.
    pub member: Option<String>,
    /// Host of the client, if it is in a namespace of its own.
    pub host: Option<String>,
    /// Identity by which servers recognise a repetition: an `Idempotency-Key`, an attachment, a claim.
    pub key: Option<String>,
    /// Endpoint as `kind/realm/namespace/name`, or owner of a prefix.
    pub endpoint: Option<String>,
    /// Pools of the request, or the pool that is read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<String>,
    /// Requested address, CIDR, or the name of a resource.
    pub target: Option<String>,
    /// Grants that the operation made, ended or read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<Grant>,
    /// Revision of the answer.
    pub revision: Option<u64>,
    /// True for a read with `?consistency=stale`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_stale: bool,
    /// Time to live of a requested or renewed lease.
    pub ttl_ms: Option<u64>,
    /// Code of the refusal, or a text where there is none.
    pub error: Option<String>,
    /// Fault of an operation of the nemesis.
    pub fault: Option<Fault>,
    /// Evidence that a fault took hold: counters and exit codes; empty for a fault without effect.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// Details of one function only.
    #[serde(skip_serializing_if = "serde_json::Value::is_null")]
    pub detail: serde_json::Value,
}

/// Address or prefix that an endpoint holds.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Grant {
    /// Allocation id, or id of the prefix.
    pub id: u64,
    /// Network of the address.
    pub network: String,
    /// Address, or the CIDR of a prefix.
    pub address: String,
    /// Pool.
    pub pool: Option<String>,
    /// Holder, if it is not the operation's endpoint.
    pub endpoint: Option<String>,
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Allocate => "allocate",
            Self::Release => "release",
            Self::Renew => "renew",
            Self::Add => "add",
            Self::Del => "del",
            Self::Check => "check",
            Self::Claim => "claim",
            Self::Delegate => "delegate",
            Self::Return => "return",
            Self::Transaction => "transaction",
            Self::Read => "read",
            Self::List => "list",
            Self::Events => "events",
            Self::Put => "put",
            Self::Delete => "delete",
            Self::Farm => "farm",
            Self::Fault => "fault",
        })
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Invoke => "invoke",
            Self::Ok => "ok",
            Self::Fail => "fail",
            Self::Info => "info",
        })
    }
}

impl Operation {
    /// Returns true for the begin of an operation.
    #[must_use]
    pub fn is_invoke(&self) -> bool {
        self.kind == Type::Invoke
    }
}
