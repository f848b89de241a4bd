//! Allocation of one address, or of one address per family, for a new endpoint with each call.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::names::next_number;
use super::template::{PLACE, Template};
use crate::bench::load::{Answer, Call, Client};
use crate::bench::wire::{Connection, Response, request};

/// Path of allocations.
pub(super) const ALLOCATIONS: &str = "/v1/allocations";
/// Pause after a refusal without `Retry-After`.
const PAUSE: Duration = Duration::from_millis(20);
/// Large pools of both families.
pub(in crate::bench) const DUAL_STACK: [&str; 2] = ["large", "large6"];

/// Body of an allocation from pools; names of IPv6 pools end with 6. Without pools, ipamd selects a pool by
/// labels.
pub(in crate::bench) fn allocation(name: &str, pools: &[&str], labels: &Value) -> Value {
    let (six, four): (Vec<&str>, Vec<&str>) = pools.iter().partition(|pool| pool.ends_with('6'));
    let mut body = json!({"endpoint": {"kind": "host", "name": name}, "interfaces": [{"name": "eth0"}]});
    if let Some(interface) = body.pointer_mut("/interfaces/0").and_then(Value::as_object_mut) {
        for (field, pools) in [("ipv4_pools", four), ("ipv6_pools", six)] {
            if !pools.is_empty() {
                interface.insert(field.to_owned(), json!(pools));
            }
        }
    }
    if let (Some(body), Value::Object(_)) = (body.as_object_mut(), labels) {
        body.insert("labels".to_owned(), labels.clone());
    }
    body
}

/// Client that allocates.
#[derive(Debug)]
pub(in crate::bench) struct Allocate {
    connection: Connection,
    template: Template,
}

impl Allocate {
    /// Client of a server that allocates from these pools.
    pub(in crate::bench) fn new(server: SocketAddr, pools: &[&str]) -> Self {
        Self::with_labels(server, pools, &Value::Null)
    }

    /// Client of a server that allocates from these pools for an endpoint with labels.
    pub(in crate::bench) fn with_labels(server: SocketAddr, pools: &[&str], labels: &Value) -> Self {
        let body = allocation(&format!("b{PLACE}"), pools, labels).to_string();
        let template = Template::new(request("POST", server, ALLOCATIONS, &body));
        Self { connection: Connection::new(server), template }
    }

    /// Sets the source address of the client, and opens its connection.
    pub(in crate::bench) async fn opened_from(mut self, source: std::net::Ipv4Addr) -> Result<Self> {
        self.connection = self.connection.from(source);
        self.connection.open().await?;
        Ok(self)
    }

    /// Allocates once; the response is in the connection.
    pub(super) async fn allocate(&mut self) -> Result<Response<'_>> {
        self.connection.exchange(self.template.with(next_number())).await
    }

    /// Connection for other requests to the same server.
    pub(super) fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }
}

impl Client for Allocate {
    fn call(&mut self) -> Call<'_> {
        Box::pin(async { answer(&self.allocate().await?, 1) })
    }
}

/// Answer for a response: success counts as this many operations.
pub(super) fn answer(response: &Response<'_>, operations: u64) -> Result<Answer> {
    match response.status {
        200..300 => Ok(Answer::Done(operations)),
        429 | 503 => Ok(Answer::Refused(response.retry_after.unwrap_or(PAUSE))),
        status => bail!("status {status}: {}", String::from_utf8_lossy(response.body)),
    }
}
