//! ADD and DEL of an attachment: through the journal to the cluster.
//!
//! The record of an ADD is written before its request is sent, and durable before the ADD is answered. So an
//! agent that is killed at any time knows each attachment that may hold addresses. A power failure ends the
//! boot, and with it every container of that boot.

#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use ipam_api::agent::Netns;
use ipam_api::client::{Answer, Call};
use ipam_api::limits::{DEL_WAIT_MS_MAX, TEXT_CHARS_MAX};
use ipam_api::mac::MacAddress;
use ipam_api::name::InterfaceName;
use ipam_api::problem::{Applied, Code, Problem};
use ipam_api::request::{Allocated, AttachmentKey, Released, Started};
use ipam_api::resource::EndpointKey;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::boot;
use crate::journal::{Entry, Key, Phase, Receipt, Record, Unwritable};
use crate::netns;
use crate::node::Node;
use crate::probing::add::{Add, addresses, attached, probed};
use crate::probing::wire::Wire;
use crate::release::{Deletion, deliver, is_waiting, release};
use crate::seeded::SeededBug;

/// Facts of the plugin about the container of an ADD.
#[derive(Debug, Clone, Default)]
pub struct Container {
    /// Runtime that runs the container.
    pub runtime: String,
    /// Network namespace as the plugin sees it.
    pub netns: Option<Netns>,
    /// Interface of the host that the main plugin connects the container to.
    pub link: Option<InterfaceName>,
    /// True if the main plugin assigns the gateway's address to the node itself.
    pub node_is_gateway: bool,
    /// MAC address of the container's interface, if its IPv4 addresses are to be announced.
    pub mac: Option<MacAddress>,
}

/// Body of a request about an attachment, with the node that it is on.
#[derive(Debug, Clone)]
pub struct Request {
    key: Key,
    started: Started,
    body: Map<String, Value>,
}

impl Request {
    /// Reads a body, and makes this node the node of the request. Unknown fields are kept, since a newer
    /// plugin may send them to newer servers.
    ///
    /// # Errors
    /// `malformed-body` or `invalid-field`.
    pub fn read(node: &Node, body: &[u8]) -> Result<Self, Problem> {
        let mut body: Map<String, Value> = serde_json::from_slice(body)
            .map_err(|error| Problem::new(Code::MalformedBody, error.to_string()))?;
        let AttachmentKey { node: named, config, container_id, interface, .. } = field(&body, "attachment")?;
        let key = Key { config, container_id, interface };
        let mut started: Started = match body.get("started") {
            Some(_) if !SeededBug::RestampedRequest.is_on() => field(&body, "started")?,
            _ => boot::now(&node.boot_id),
        };
        started.boot_id.clone_from(&node.boot_id);
        let own = &node.config.node;
        body.insert("attachment".to_owned(), value(&key.on(own))?);
        body.insert("started".to_owned(), value(&started)?);
        if body.contains_key("node") {
            body.insert("node".to_owned(), own.name.as_str().into());
        }
        if let Some(endpoint) = body.get_mut("endpoint").and_then(Value::as_object_mut) {
            endpoint.insert("realm".to_owned(), own.realm.as_str().into());
            // The namespace of a container without an orchestrator is the name of its node.
            let is_of_node = endpoint.get("kind").is_some_and(|kind| kind == "container")
                && endpoint.get("namespace").is_some_and(|namespace| *namespace == named.as_str());
            if is_of_node {
                endpoint.insert("namespace".to_owned(), own.name.as_str().into());
            }
        }
        Ok(Self { key, started, body })
    }

    /// Endpoint of an ADD, unless it is malformed.
    #[must_use]
    pub fn endpoint(&self) -> Option<EndpointKey> {
        field(&self.body, "endpoint").ok()
    }

    /// Uid of the endpoint's incarnation. The servers refuse an overlong one.
    #[must_use]
    pub fn uid(&self) -> Option<String> {
        let uid = self.body.get("uid").and_then(Value::as_str).filter(|uid| uid.len() <= TEXT_CHARS_MAX);
        uid.map(str::to_owned)
    }

    /// Body of the request, to which the agent adds facts.
    pub fn body(&mut self) -> &mut Map<String, Value> {
        &mut self.body
    }
}

fn field<T: DeserializeOwned>(body: &Map<String, Value>, name: &str) -> Result<T, Problem> {
    let value = body.get(name).unwrap_or(&Value::Null);
    T::deserialize(value)
        .map_err(|error| Problem::new(Code::InvalidField, format!("{name}: {error}")).at(format!("/{name}")))
}

fn value(of: &impl serde::Serialize) -> Result<Value, Problem> {
    serde_json::to_value(of).map_err(|error| Problem::new(Code::Internal, error.to_string()))
}

/// Allocates the addresses of an attachment, and probes them. Continues after the plugin is killed, so that
/// the journal has the outcome.
///
/// # Errors
/// The servers' problem, or the journal's.
pub async fn add(
    node: Arc<Node>,
    wire: impl Wire + 'static,
    request: Request,
    container: Container,
    budget: Duration,
) -> Result<Answer, Problem> {
    let began = Instant::now();
    // The servers refuse a malformed endpoint and an overlong uid.
    let (endpoint, uid) = (request.endpoint(), request.uid());
    let Request { key, started, body } = request;
    let Container { runtime, netns, link, node_is_gateway, mac } = container;
    #[cfg(feature = "testing")]
    crate::testing::KillPoint::AddRead.reach();
    // The journal has no record of the ADD yet, so a refusal here has no effect at all.
    let turn = node.turns.take(budget.saturating_sub(began.elapsed())).await?;
    let flight = node.adding.enter(&key);
    let netns = match netns {
        Some(netns) => netns::observed(netns).await,
        None => None,
    };
    let entry = Entry {
        key: key.clone(),
        phase: Phase::Adding,
        boot_id: node.boot_id.clone(),
        runtime,
        netns,
        endpoint,
        uid,
        allocations: Vec::new(),
    };
    let receipt = record(&node, entry, began + budget).await?;
    #[cfg(feature = "testing")]
    crate::testing::KillPoint::AddRecorded.reach();
    let left = budget.saturating_sub(began.elapsed());
    let call = Call::post("/v1/allocations").json(&body)?.repeatable().within(left);
    let result = node.cluster.send(call).await;
    // Probes take long and cause few requests to the members, so they need no turn.
    drop(turn);
    receipt.synced().await?;
    let outcome = match &result {
        Ok(answer) => {
            let allocated: Allocated = answer.read()?;
            Some(attached(&allocated, &key))
        }
        // Another copy of the request may have been granted.
        Err(problem) if problem.applied == Applied::No && node.adding.count(&key) == 1 => {
            Some(Record::Refused(key.clone()))
        }
        Err(_) => None,
    };
    if let Some(record) = outcome
        && let Err(error) = node.journal.write(record).await
    {
        // The inventory later reads the outcome from the cluster.
        tracing::warn!(attachment = %key, %error, "the outcome of an ADD is not in the journal");
    }
    #[cfg(feature = "testing")]
    crate::testing::KillPoint::Attached.reach();
    let until = began + budget;
    let add = Add {
        node: &node,
        key: &key,
        started: &started,
        body: &body,
        link: link.as_ref(),
        node_is_gateway,
        until,
    };
    // The flight lasts until the end of the probes, so that the inventory ignores the attachment.
    let result = probed(&add, &wire, result?).await;
    drop(flight);
    if let (Ok(answer), Some(mac), Some(link)) = (&result, mac, link) {
        announce(wire, link, mac, answer.read()?, &key);
    }
    result
}

/// Records an ADD after the delivery of all earlier DELs, including those that arrived during the wait for a
/// turn.
///
/// # Errors
/// The servers' problem with a DEL, or the journal's. The ADD is then not recorded.
async fn record(node: &Node, mut entry: Entry, until: Instant) -> Result<Receipt, Problem> {
    loop {
        let present = node.journal.attachments().get(&entry.key).cloned();
        if let Some(deletion) = present.as_ref().and_then(Deletion::of) {
            // The cluster must see the DEL first.
            deliver(node, &deletion, until.saturating_duration_since(Instant::now())).await?;
            if is_waiting(node, &deletion) {
                return Err(Unwritable::Failed("a delivered DEL is still in it".to_owned()).into());
            }
            continue;
        }
        entry.allocations = present.map(|present| present.allocations).unwrap_or_default();
        let receipt = node.journal.write(Record::Put(entry.clone())).await?;
        // A DEL that was queued in the journal before this record has precedence.
        if !node.journal.attachments().get(&entry.key).is_some_and(Entry::is_deleting) {
            return Ok(receipt);
        }
    }
}

/// Announces the IPv4 addresses of an attachment on its link, without delaying the ADD.
///
/// After a failure, hosts remember the former holder until their caches expire.
fn announce(
    wire: impl Wire + 'static,
    link: InterfaceName,
    mac: MacAddress,
    allocated: Allocated,
    key: &Key,
) {
    let addresses = addresses(&allocated, key).filter_map(|one| match one.address.addr() {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    });
    let (addresses, key): (Vec<Ipv4Addr>, _) = (addresses.collect(), key.clone());
    if addresses.is_empty() {
        return;
    }
    tokio::spawn(async move {
        if let Err(error) = wire.announce(link.as_str(), mac, &addresses).await {
            tracing::debug!(attachment = %key, %error, "the addresses of an ADD are not announced");
        }
    });
}

/// Releases the addresses of an attachment: now if the cluster answers, else later.
///
/// # Errors
/// The servers' problem, only if neither the journal nor the cluster has the DEL.
pub async fn del(node: Arc<Node>, request: Request) -> Result<Option<Answer>, Problem> {
    let Request { key, started, body } = request;
    let deletion = Deletion { key, release: body, started };
    #[cfg(feature = "testing")]
    crate::testing::KillPoint::DelRead.reach();
    release(&node, &deletion, Duration::from_millis(DEL_WAIT_MS_MAX)).await
}

/// Answer to a DEL that is not delivered yet.
#[must_use]
pub fn recorded() -> Released {
    Released { addresses: Vec::new(), more: 0, late: false, revision: 0 }
}
