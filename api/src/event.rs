//! Events as HTTP shows them: history, watch and audit are one resource.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::mac::MacAddress;
use crate::name::{InterfaceName, Name, ObjectName};
use crate::resource::EndpointKey;
use crate::time::Timestamp;

/// One thing that has happened. Readers accept names and members that they don't know.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// The revision after the command that brought it about.
    pub revision: u64,
    /// Its place among the command's events, from 0.
    pub number: u32,
    /// Wall time of the leader that proposed the change.
    pub at: Timestamp,
    /// Its name, such as `address.allocated`.
    #[serde(rename = "type")]
    pub event_type: String,
    /// Name of the changed object, or the address.
    pub object: String,
    /// Kind of the object: the first word of the event's name.
    pub kind: String,
    /// The network of the address.
    pub network: Option<Name>,
    /// The pool of the address.
    pub pool: Option<Name>,
    /// Endpoint that holds or held the address.
    pub endpoint: Option<EndpointKey>,
    /// On which interface.
    pub interface: Option<InterfaceName>,
    /// By which allocation.
    pub allocation: Option<u64>,
    /// Id of the prefix.
    pub prefix: Option<u64>,
    /// Realm and name of the prefix's owner.
    pub owner: Option<String>,
    /// On which node.
    pub node: Option<ObjectName>,
    /// MAC addresses of the stations that answered probes: the endpoint's first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub macs: Vec<MacAddress>,
    /// Principal and origin of the request.
    pub by: By,
    /// Reason of the change, determined by the state machine.
    pub reason: Option<String>,
    /// Comment of the caller.
    pub comment: Option<String>,
    /// Changed fields with old and new values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FieldChange>,
}

impl Event {
    /// Position of the event, `REVISION.NUMBER`, after which a watch can resume.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}.{}", self.revision, self.number)
    }
}

/// Principal and origin of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct By {
    /// Principal of the request.
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
    /// Name of the field.
    pub field: String,
    /// Old value; empty for none.
    pub from: String,
    /// New value.
    pub to: String,
}

/// Page of events. It may be short or even empty without being the last; `next` decides.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventPage {
    /// The events.
    pub items: Vec<Event>,
    /// The revision up to which the page knows everything.
    pub revision: u64,
    /// Cursor of the next page, for `after`; absent on the last page.
    pub next: Option<String>,
    /// The oldest event that is kept, if any is.
    pub oldest: Option<String>,
}

/// Holders of an address over time.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AddressHistory {
    /// The address.
    pub address: IpAddr,
    /// Network of the address.
    pub network: Name,
    /// Requested time, if any.
    pub at: Option<Timestamp>,
    /// State at `at`: `allocated`, `cooling`, `quarantined`, `free` or, before the start of history,
    /// `compacted`. `free` means none of the others.
    pub state: Option<String>,
    /// Holder at that time, or the last one before it, as far as history is kept.
    pub last_holder: Option<EndpointKey>,
    /// Events of the address, newest first; up to `at` if given.
    pub events: Vec<Event>,
    /// Cursor of the next page, for `after`; absent on the last page.
    pub next: Option<String>,
    /// Start of the complete history; absent if no history was dropped.
    pub oldest_kept: Option<Timestamp>,
    /// The state that this was read from.
    pub revision: u64,
}
