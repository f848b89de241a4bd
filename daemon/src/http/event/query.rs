//! Query parameters of events, parsed strictly.

use std::net::IpAddr;

use ipam_api::address::parse_address;
use ipam_api::limits::OBJECT_NAME_CHARS_MAX;
use ipam_api::name::{Name, shown};
use ipam_api::resource::EndpointKey;
use ipam_api::time::Timestamp;
use ipam_api::{Code, Problem};
use ipam_machine::{EventId, event};
use ipam_raft::{EventFilter, EventQuery};
use serde::Deserialize;

use crate::http::request::{Consistency, page_limit};

/// Parameters of a page or stream of events.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct EventsQuery {
    pub(super) consistency: Option<Consistency>,
    pub(super) at_least_revision: Option<u64>,
    pub(super) after: Option<String>,
    limit: Option<usize>,
    #[serde(default)]
    pub(super) reverse: bool,
    kind: Option<String>,
    pool: Option<Name>,
    network: Option<Name>,
    address: Option<String>,
    /// Endpoint, as `kind/realm/namespace/name`.
    endpoint: Option<String>,
    principal: Option<String>,
    pub(super) since: Option<String>,
    until: Option<String>,
}

/// Parameters of an address's history.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct HistoryQuery {
    pub(super) consistency: Option<Consistency>,
    pub(super) at_least_revision: Option<u64>,
    #[serde(default = "Name::default_name")]
    pub(super) network: Name,
    pub(super) at: Option<String>,
    since: Option<String>,
    after: Option<String>,
    limit: Option<usize>,
}

impl EventsQuery {
    /// Parameters of the page.
    pub(in crate::http) fn page(&self) -> Result<EventQuery, Problem> {
        Ok(EventQuery {
            after: self.after.as_deref().map(place).transpose()?,
            reverse: self.reverse,
            limit: page_limit(self.limit)?,
            filter: self.filter()?,
        })
    }

    fn filter(&self) -> Result<EventFilter, Problem> {
        let principal = self.principal.clone();
        if principal.as_ref().is_some_and(|principal| principal.chars().count() > OBJECT_NAME_CHARS_MAX) {
            return Err(Problem::new(Code::InvalidFilter, "no principal has so long a name"));
        }
        Ok(EventFilter {
            kinds: self.kind.as_deref().map(kinds).transpose()?.unwrap_or_default(),
            pool: self.pool.clone(),
            network: self.network.clone(),
            address: self.address.as_deref().map(parse_address).transpose()?,
            endpoint: self.endpoint.as_deref().map(str::parse::<EndpointKey>).transpose()?,
            principal,
            since_ms: self.since.as_deref().map(moment).transpose()?,
            until_ms: self.until.as_deref().map(moment).transpose()?,
        })
    }
}

impl HistoryQuery {
    /// Query for the events of the address, the newest first.
    pub(super) fn page(&self, address: IpAddr, at_ms: Option<u64>) -> Result<EventQuery, Problem> {
        Ok(EventQuery {
            after: self.after.as_deref().map(place).transpose()?,
            reverse: true,
            limit: page_limit(self.limit)?,
            filter: EventFilter {
                network: Some(self.network.clone()),
                address: Some(address),
                since_ms: self.since.as_deref().map(moment).transpose()?,
                until_ms: at_ms,
                ..EventFilter::default()
            },
        })
    }
}

pub(super) fn place(text: &str) -> Result<EventId, Problem> {
    text.parse()
}

/// Parses a time. Returns milliseconds since 1970.
pub(super) fn moment(text: &str) -> Result<u64, Problem> {
    let moment = text.parse::<Timestamp>();
    moment.map(|moment| moment.0).map_err(|why| {
        Problem::new(Code::InvalidFilter, why).help("Write it like 2026-11-20T11:30:00Z; encode + as %2B.")
    })
}

/// Comma-separated kinds, each one of the kinds of events.
fn kinds(text: &str) -> Result<Vec<String>, Problem> {
    let known = |kind: &str| event::NAMES.iter().any(|(name, _)| name.split('.').next() == Some(kind));
    let mut kinds: Vec<String> = Vec::new();
    for kind in text.split(',') {
        if !known(kind) {
            return Err(Problem::new(
                Code::InvalidFilter,
                format!("no event is of the kind {}", shown(kind)),
            ));
        }
        if !kinds.iter().any(|other| other == kind) {
            kinds.push(kind.to_owned());
        }
    }
    Ok(kinds)
}
