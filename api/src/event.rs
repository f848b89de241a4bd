//! What has happened, as HTTP shows it: history, watch and audit are one resource.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::name::{InterfaceName, Name, ObjectName};
use crate::resource::EndpointKey;
use crate::time::Timestamp;

/// One thing that has happened. Readers accept names and members that they don't know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// The revision after the command that brought it about.
    pub revision: u64,
    /// Its place among the command's events, from 0.
    pub number: u32,
    /// When, by the clock of the member that led then.
    pub at: Timestamp,
    /// Its name, such as `address.allocated`.
    #[serde(rename = "type")]
    pub event_type: String,
    /// The name of what it is about, or the address.
    pub object: String,
    /// Of which kind that is: the first word of the event's name.
    pub kind: String,
    /// The network of the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Name>,
    /// The pool of the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<Name>,
    /// Who holds or held the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<EndpointKey>,
    /// On which interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<InterfaceName>,
    /// By which allocation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocation: Option<u64>,
    /// Which prefix it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<u64>,
    /// Whose that is or was: realm and name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// On which node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<ObjectName>,
    /// Who asked for it, and how.
    pub by: By,
    /// Why, as the machine knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why, in the caller's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Which fields have changed, and how.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FieldChange>,
}

impl Event {
    /// Its name among all events, `REVISION.NUMBER`: where to go on after it.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}.{}", self.revision, self.number)
    }
}

/// Who asked, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct By {
    /// Who.
    pub principal: String,
    /// Through which door: `http`, `cni` or `task`.
    pub via: String,
    /// Names the request in logs and answers.
    pub request_id: String,
}

/// A field that has changed. Long values are cut, with `…` where something is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FieldChange {
    /// Its name.
    pub field: String,
    /// What it was; empty for nothing.
    pub from: String,
    /// What it is.
    pub to: String,
}

/// A page of events. It may be short, or empty, and yet not the last: only `next` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventPage {
    /// The events.
    pub items: Vec<Event>,
    /// The revision up to which the page knows everything.
    pub revision: u64,
    /// Where to go on, as `after`; absent when there is no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The oldest event that is kept, if any is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest: Option<String>,
}

/// Who had an address, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AddressHistory {
    /// The address.
    pub address: IpAddr,
    /// Its network.
    pub network: Name,
    /// The moment that was asked for, if one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// How it stood then: `allocated`, `cooling`, `free` (nobody held it, and it didn't rest), or `compacted` for a
    /// moment of which nothing is kept any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Who held it at that moment, or last before it, as far as history is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_holder: Option<EndpointKey>,
    /// What happened to it, the newest first; up to that moment if one was asked for.
    pub events: Vec<Event>,
    /// Where to go on, as `after`; absent when there is no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// From when on history is complete; absent as long as nothing was ever given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_kept: Option<Timestamp>,
    /// The state that this was read from.
    pub revision: u64,
}
