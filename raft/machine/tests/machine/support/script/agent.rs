//! Reports of a node's agent.

use super::revision;
use super::words::Words;
use ipam_api::Problem;
use ipam_api::access::NodeKey;
use ipam_api::mac::MacAddress;
use ipam_api::name::Name;
use ipam_api::node_report::{AgentProblem, Inventory, InventoryDigest, OrphanEvidence};
use ipam_machine::Action;
use ipam_machine::command::{
    AgentReadiness, EndIncarnation, EndQuarantine, Heartbeat, Link, Orphan, ProbeResult, Reclaim,
    ReclaimReason, ReleaseOrphans, ReportProbes, ReportedBoot, Text,
};

fn node(words: &mut Words) -> Result<NodeKey, Problem> {
    Ok(NodeKey { realm: Name::default_name(), name: words.take().parse()? })
}

pub(super) fn heartbeat(words: &mut Words) -> Result<Action, Problem> {
    let node = node(words)?;
    let boot = words.field("boot").unwrap();
    let (id, number) = boot.split_once(':').unwrap();
    let problem = words.field("problem").map(|word| match word.as_str() {
        "journal-unwritable" => AgentProblem::JournalUnwritable,
        "socket-unavailable" => AgentProblem::SocketUnavailable,
        other => panic!("no such problem: {other}"),
    });
    Ok(Action::Heartbeat(Heartbeat {
        node,
        boot: ReportedBoot { id: Text::given(id), number: number.parse().unwrap() },
        readiness: AgentReadiness { ready: problem.is_none(), problem },
        agent_version: Text::given(words.field("version").unwrap_or_else(|| "1.0".to_owned())),
        links: words.list("links").iter().map(|text| link(text)).collect(),
        inventory: words.field("inventory").map_or_else(Inventory::default, |text| inventory(&text)),
    }))
}

/// `COUNT:DIGEST`.
fn inventory(text: &str) -> Inventory {
    let (attachments, digest) = text.split_once(':').expect("COUNT:DIGEST");
    let attachments = attachments.parse().unwrap();
    Inventory::of(&InventoryDigest { attachments, digest: digest.to_owned() }).expect("16 digits")
}

/// `CIDR` or `NETWORK@CIDR`.
fn link(text: &str) -> Link {
    let (network, cidr) = text.split_once('@').unwrap_or(("default", text));
    Link { network: network.parse().unwrap(), cidr: cidr.parse().unwrap() }
}

/// `[NETWORK@]ADDRESS[#ALLOCATION]>[MAC[+MAC]]` for each result.
pub(super) fn probes(words: &mut Words) -> Result<Action, Problem> {
    let node = node(words)?;
    let mut results = Vec::new();
    while !words.is_empty() {
        let word = words.take();
        let (which, macs) = word.split_once('>').expect("ADDRESS>MACS");
        let (network, which) = which.split_once('@').unwrap_or(("default", which));
        let (address, allocation) = which.split_once('#').map_or((which, None), |(a, id)| (a, Some(id)));
        results.push(ProbeResult {
            network: network.parse()?,
            address: address.parse().unwrap(),
            macs: macs.split('+').filter(|text| !text.is_empty()).map(mac).collect(),
            allocation: allocation.map(|id| revision(id).into()),
        });
    }
    Ok(Action::ReportProbes(ReportProbes { node, results }))
}

/// A MAC address, or `m` and its last octet.
fn mac(text: &str) -> MacAddress {
    match text.strip_prefix('m') {
        Some(last) => MacAddress::new([2, 0, 0, 0, 0, last.parse().unwrap()]),
        None => text.parse().unwrap(),
    }
}

pub(super) fn end_quarantine(words: &mut Words) -> Result<Action, Problem> {
    let network = words.field("network").map_or(Ok(Name::default_name()), |text| text.parse())?;
    Ok(Action::EndQuarantine(EndQuarantine { network, address: words.take().parse().unwrap() }))
}

pub(super) fn reclaim(words: &mut Words) -> Result<Action, Problem> {
    let node = node(words)?;
    let reason = match words.take().split_once(':') {
        Some(("silent", grace)) => ReclaimReason::NodeSilent { grace_ms: grace.parse().unwrap() },
        _ => ReclaimReason::NodeGone,
    };
    let mut allocations = Vec::new();
    while !words.is_empty() {
        allocations.push(revision(&words.take()).into());
    }
    Ok(Action::Reclaim(Reclaim { node, reason, allocations }))
}

pub(super) fn end_incarnation(words: &mut Words) -> Result<Action, Problem> {
    let uid = Text::given(words.field("uid").unwrap());
    let endpoint = words.take().parse()?;
    let mut allocations = Vec::new();
    while !words.is_empty() {
        allocations.push(revision(&words.take()).into());
    }
    Ok(Action::EndIncarnation(EndIncarnation { endpoint, uid, allocations }))
}

pub(super) fn orphans(words: &mut Words) -> Result<Action, Problem> {
    let node = node(words)?;
    let mut orphans = Vec::new();
    while !words.is_empty() {
        let word = words.take();
        let [attachment, ids, evidence] = word.split(':').collect::<Vec<_>>().try_into().unwrap();
        let [config, container_id, interface] =
            attachment.split('/').collect::<Vec<_>>().try_into().expect("CONFIG/CONTAINER/INTERFACE");
        orphans.push(Orphan {
            config: config.parse()?,
            container_id: container_id.parse()?,
            interface: interface.parse()?,
            allocations: ids.split(',').filter(|id| !id.is_empty()).map(|id| revision(id).into()).collect(),
            evidence: match evidence {
                "netns-gone" => OrphanEvidence::NetnsGone,
                "earlier-boot" => OrphanEvidence::EarlierBoot,
                "not-in-gc-list" => OrphanEvidence::NotInGcList,
                other => panic!("no such evidence: {other}"),
            },
        });
    }
    Ok(Action::ReleaseOrphans(ReleaseOrphans { node, orphans }))
}
