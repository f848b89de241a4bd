//! Probes of an ADD: no address reaches the plugin that another station uses, or whose gateway is silent.
//!
//! The cluster specifies which addresses need a probe. A conflict is reported: the cluster quarantines the
//! address and replaces it, and a repetition of the same ADD returns the replacement. An agent that is killed
//! at any step loses nothing: the attachment is in the journal, and a repeated ADD requires the probe again
//! until a report has reached the cluster.

mod problem;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use ipam_api::client::{Answer, Call};
use ipam_api::limits::{CONFLICTS_PER_ADD_MAX, DEL_WAIT_MS_MAX, PROBE_ANSWER_MS};
use ipam_api::mac::MacAddress;
use ipam_api::name::{InterfaceName, Name};
use ipam_api::probe::{ProbeResult, ProbesRequest};
use ipam_api::problem::Problem;
use ipam_api::request::{Allocated, ReleaseAttachmentRequest, Started};
use ipam_api::resource::GivenAddress;
use serde_json::{Map, Value};
use tokio::time::Instant;

use self::problem::{Conflict, Failure, out_of_time, unreachable, unsent};
use crate::journal::{Key, Phase, Record};
use crate::node::Node;
use crate::probe::Purpose;
use crate::probing::links::Links;
use crate::probing::report::{macs, report};
use crate::probing::wire::Wire;
use crate::release::{Deletion, release};

/// ADD that the cluster has answered.
#[derive(Debug)]
pub struct Add<'a> {
    /// This node.
    pub node: &'a Node,
    /// Identity of the attachment.
    pub key: &'a Key,
    /// Start of the plugin's process.
    pub started: &'a Started,
    /// Body of the request, for its repetition.
    pub body: &'a Map<String, Value>,
    /// Interface of the host that the main plugin connects the container to.
    pub link: Option<&'a InterfaceName>,
    /// True if the main plugin assigns the gateway's address to the node itself, after this ADD.
    pub node_is_gateway: bool,
    /// Deadline of the plugin.
    pub until: Instant,
}

impl Add<'_> {
    fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    fn check_time(&self) -> Result<(), Failure> {
        let is_enough = self.left() >= Duration::from_millis(PROBE_ANSWER_MS);
        if is_enough { Ok(()) } else { Err(out_of_time()) }
    }

    /// Addresses of the attachment.
    fn addresses<'a>(&self, allocated: &'a Allocated) -> impl Iterator<Item = &'a GivenAddress> {
        addresses(allocated, self.key)
    }
}

/// Record of the allocations that an attachment got.
#[must_use]
pub fn attached(allocated: &Allocated, key: &Key) -> Record {
    let allocations = addresses(allocated, key).map(|one| one.allocation).collect();
    Record::Attached { key: key.clone(), allocations }
}

/// Addresses of an attachment.
pub fn addresses<'a>(allocated: &'a Allocated, key: &Key) -> impl Iterator<Item = &'a GivenAddress> {
    let own = key.interface.clone();
    allocated.interfaces.iter().filter(move |one| one.name == own).flat_map(|one| &one.addresses)
}

/// Makes the probes that the answer to an ADD requires; returns the answer whose addresses may be used.
///
/// # Errors
/// The reason why no addresses may be used. They are released, unless a repetition of the ADD can continue.
pub async fn probed(add: &Add<'_>, wire: &impl Wire, answer: Answer) -> Result<Answer, Problem> {
    let allocated: Allocated = answer.read()?;
    if !add.node.config.probes || add.addresses(&allocated).all(|one| one.probes.is_none()) {
        return Ok(answer);
    }
    match settle(add, wire, answer, allocated).await {
        Ok(answer) => Ok(answer),
        Err(Failure::Unfinished(problem)) => Err(problem),
        Err(Failure::Unusable(problem)) => {
            tracing::warn!(attachment = %add.key, %problem, "the addresses of an ADD are released");
            withdraw(add).await;
            Err(problem)
        }
    }
}

/// Probes until no address is in conflict, and then the gateways.
async fn settle(
    add: &Add<'_>,
    wire: &impl Wire,
    mut answer: Answer,
    mut allocated: Allocated,
) -> Result<Answer, Failure> {
    let interfaces = wire.interfaces().await.map_err(|error| unsent(&error))?;
    let links = Links::new(&add.node.config.links, &interfaces);
    let first = families(&allocated);
    for round in 1..=CONFLICTS_PER_ADD_MAX {
        let (results, conflict) = conflicts(add, wire, &links, &allocated).await?;
        let Some(conflict) = conflict else {
            report_silence(add, results).await;
            break;
        };
        report_conflict(add, results, &conflict).await?;
        if is_requested(add.body, conflict.address) {
            return Err(conflict.requested());
        }
        if round == CONFLICTS_PER_ADD_MAX {
            return Err(conflict.last());
        }
        let failed = |problem: Problem| conflict.without_replacement(&problem);
        answer = repeat(add).await.map_err(failed)?;
        allocated = answer.read().map_err(failed)?;
        note(add, attached(&allocated, add.key)).await;
        let present = families(&allocated);
        let lacks = |(place, count): &(&(InterfaceName, bool), &usize)| present.get(place) < Some(count);
        if let Some(((interface, is_ipv4), _)) = first.iter().find(lacks) {
            return Err(conflict.incomplete(interface, if *is_ipv4 { "IPv4" } else { "IPv6" }));
        }
    }
    // Gateways are probed last: an address in conflict would put a wrong neighbour into the gateway's cache.
    gateways(add, wire, &links, &allocated).await?;
    Ok(answer)
}

/// Returns true if the ADD requests this very address, so that no other address can replace it.
fn is_requested(body: &Map<String, Value>, address: IpAddr) -> bool {
    let interfaces = body.get("interfaces").and_then(Value::as_array).into_iter().flatten();
    let requested = interfaces.filter_map(|one| one.get("addresses")?.as_array()).flatten();
    let mut requested = requested.filter_map(|text| text.as_str()?.parse::<IpAddr>().ok());
    requested.any(|one| one.to_canonical() == address)
}

/// Number of addresses by interface and family.
fn families(allocated: &Allocated) -> BTreeMap<(InterfaceName, bool), usize> {
    let mut counts = BTreeMap::new();
    for interface in &allocated.interfaces {
        for one in &interface.addresses {
            let place = (interface.name.clone(), one.address.addr().is_ipv4());
            *counts.entry(place).or_default() += 1;
        }
    }
    counts
}

/// Probes all addresses that need it; returns the results, and the first conflict among them.
async fn conflicts(
    add: &Add<'_>,
    wire: &impl Wire,
    links: &Links,
    allocated: &Allocated,
) -> Result<(Vec<ProbeResult>, Option<Conflict>), Failure> {
    let mut by_interface: BTreeMap<&str, BTreeMap<IpAddr, (&GivenAddress, Name)>> = BTreeMap::new();
    for given in add.addresses(allocated).filter(|given| given.probes.conflicts) {
        let address = given.address.addr();
        match links.of_add(add.link, address) {
            Some((interface, network)) => {
                by_interface.entry(interface).or_default().insert(address, (given, network));
            }
            None => {
                let named = add.link;
                tracing::debug!(attachment = %add.key, %address, ?named, "an address has no link to probe");
            }
        }
    }
    let (mut results, mut conflict) = (Vec::new(), None);
    for (interface, asked) in by_interface {
        add.check_time()?;
        let addresses: BTreeSet<IpAddr> = asked.keys().copied().collect();
        tracing::debug!(attachment = %add.key, ?addresses, %interface, "probing addresses of an ADD");
        let outcomes = wire.probe(interface, &addresses, Purpose::Conflict).await;
        let mut outcomes = outcomes.map_err(|error| unsent(&error))?;
        for (address, (given, network)) in asked {
            let Some(outcome) = outcomes.remove(&address) else { continue };
            // A container whose ADD is repeated may have its address already.
            let holder: Option<MacAddress> = given.mac.as_ref().and_then(|mac| mac.parse().ok());
            let mut macs = macs(outcome);
            macs.retain(|mac| holder != Some(*mac));
            if let Some(mac) = links.own(interface, address).filter(|_| macs.is_empty()) {
                macs.push(MacAddress::new(mac.octets()));
            }
            if let Some(mac) = macs.first().filter(|_| conflict.is_none()) {
                conflict = Some(Conflict { address, mac: *mac, interface: interface.to_owned() });
            }
            results.push(ProbeResult { network, address, macs, allocation: Some(given.allocation) });
        }
    }
    Ok((results, conflict))
}

/// Reports that all addresses were silent. If the report fails, they stay unchecked, and are used.
async fn report_silence(add: &Add<'_>, results: Vec<ProbeResult>) {
    if results.is_empty() {
        return;
    }
    let request = ProbesRequest { results, ..ProbesRequest::default() };
    // The rest of the time is reserved for the gateways and the answer.
    if let Err(problem) = report(add.node, &request, add.left() / 2).await {
        tracing::warn!(attachment = %add.key, %problem, "probed addresses stay unchecked in the cluster");
    }
}

/// Reports a conflict, upon which the cluster replaces the address.
async fn report_conflict(
    add: &Add<'_>,
    results: Vec<ProbeResult>,
    conflict: &Conflict,
) -> Result<(), Failure> {
    let Conflict { address, mac, interface } = conflict;
    tracing::warn!(attachment = %add.key, %address, %mac, %interface, "another station uses an address");
    // From now on, only the cluster knows the allocations of the attachment.
    let replacing = Record::Replacing(add.key.clone());
    add.node.journal.write(replacing).await.map_err(|error| conflict.unreported(&error.into()))?;
    let request = ProbesRequest { results, ..ProbesRequest::default() };
    let answer = report(add.node, &request, add.left()).await;
    let answer = answer.map_err(|problem| conflict.unreported(&problem))?;
    if answer.refused > 0 { Err(conflict.refused()) } else { Ok(()) }
}

/// Sends the same ADD again.
async fn repeat(add: &Add<'_>) -> Result<Answer, Problem> {
    let call = Call::post("/v1/allocations").json(add.body)?.repeatable().within(add.left());
    add.node.cluster.send(call).await
}

/// Fails unless all gateways that must answer do.
async fn gateways(
    add: &Add<'_>,
    wire: &impl Wire,
    links: &Links,
    allocated: &Allocated,
) -> Result<(), Failure> {
    let mut by_interface: BTreeMap<&str, BTreeSet<IpAddr>> = BTreeMap::new();
    let is_foreign = |given: &&GivenAddress| given.probes.gateway && !add.node_is_gateway;
    for given in add.addresses(allocated).filter(is_foreign) {
        // A probe gets no answer from the host itself.
        let Some(gateway) = given.gateway.filter(|gateway| !links.has_address(*gateway)) else { continue };
        if let Some((interface, _)) = links.of_add(add.link, given.address.addr()) {
            by_interface.entry(interface).or_default().insert(gateway);
        } else {
            let named = add.link;
            tracing::debug!(attachment = %add.key, %gateway, ?named, "a gateway has no link to probe");
        }
    }
    for (interface, addresses) in by_interface {
        add.check_time()?;
        let outcomes = wire.probe(interface, &addresses, Purpose::Gateway).await;
        let outcomes = outcomes.map_err(|error| unsent(&error))?;
        let silent = outcomes.into_iter().find(|(_, outcome)| outcome.macs().next().is_none());
        if let Some((gateway, _)) = silent {
            return Err(unreachable(gateway, interface));
        }
    }
    Ok(())
}

async fn note(add: &Add<'_>, record: Record) {
    if let Err(error) = add.node.journal.write(record).await {
        // The inventory later reads the replacement from the cluster.
        tracing::warn!(attachment = %add.key, %error, "a replaced address is not in the journal");
    }
}

/// Releases the attachment as a DEL would, through the journal.
///
/// The release carries the start of this ADD, so it does not affect a later ADD of the attachment.
async fn withdraw(add: &Add<'_>) {
    let Add { node, key, started, .. } = add;
    let phase = node.journal.attachments().get(key).map(|entry| entry.phase.clone());
    let is_ended = matches!(phase, None | Some(Phase::Deleting { .. }));
    // Another copy of the ADD may be a later one. It probes, too, and the last copy releases.
    if is_ended || node.adding.count(key) > 1 {
        return;
    }
    let request = ReleaseAttachmentRequest {
        attachment: key.on(&node.config.node),
        started: Some((*started).clone()),
        endpoint: None,
        uid: None,
    };
    let Ok(Value::Object(body)) = serde_json::to_value(request) else { return };
    let deletion = Deletion { key: (*key).clone(), release: body, started: (*started).clone() };
    let wait = Duration::from_millis(DEL_WAIT_MS_MAX).min(add.left());
    if let Err(problem) = release(node, &deletion, wait).await {
        // The runtime sends a DEL after an ADD that failed.
        tracing::error!(attachment = %key, %problem, "an attachment can be released neither now nor later");
    }
}
