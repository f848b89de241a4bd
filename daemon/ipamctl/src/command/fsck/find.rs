//! The comparison: reads of the store, of the agents' reports and of what the agents heard on the wire.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use ipam_api::access::NodeKey;
use ipam_api::limits::PROBER_TERM_MS;
use ipam_api::node_report::{AgentReport, NodeAgent};
use ipam_api::probe::Quarantine;
use ipam_api::reclaim::GcLine;
use ipam_api::resource::{Allocation, Lifecycle};
use ipam_api::time::Timestamp;

use super::finding::{Action, Checked, Class, Finding, Kind, Report};
use crate::client::session::Session;
use crate::command::{gc, quarantine};
use crate::output::error::Failure;
use crate::output::text;

/// Time since the last answer after which a quarantine is unverified. Agents probe it once a minute.
const UNVERIFIED_MS: u64 = PROBER_TERM_MS;

/// Compares store, agents and wire.
pub(super) async fn find(session: &Session) -> Result<Report, Failure> {
    let gc = session.list::<GcLine>("/v1/gc", None, |_| true).await?;
    let quarantines = session.list::<Quarantine>("/v1/quarantines", None, |_| true).await?;
    let (number, attached) = (Cell::new(0_u64), RefCell::new(BTreeMap::<NodeKey, u64>::new()));
    let is_colliding = |one: &Allocation| {
        number.set(number.get() + 1);
        if let (Lifecycle::Attached, Some(name)) = (one.lifecycle, &one.node) {
            let node = NodeKey { realm: one.endpoint.realm.clone(), name: name.clone() };
            *attached.borrow_mut().entry(node).or_default() += 1;
        }
        one.colliding.is_some()
    };
    let colliding = session.list::<Allocation>("/v1/allocations", None, is_colliding).await?;
    let attached = attached.into_inner();
    let silent: BTreeSet<&NodeKey> = gc.items.iter().map(|line| &line.node).collect();
    let (agents, revision) = agents(session, &attached).await?;
    let now = session.now();
    let mut items: Vec<Finding> = gc.items.iter().map(|line| suspect(line, now)).collect();
    items.extend(quarantines.items.iter().map(|one| foreign_host(one, now)));
    items.extend(colliding.items.iter().map(collision));
    let awake = agents.iter().filter(|(node, _)| !silent.contains(node));
    for (node, agent) in awake {
        items.extend(unready(node, agent.as_ref(), attached.get(node)));
        items.extend(agent.as_ref().and_then(|agent| mismatch(node, agent)));
    }
    items.sort_by_key(|one| (one.class, one.kind));
    Ok(Report {
        items,
        checked: Checked {
            allocations: number.get(),
            nodes: agents.len() as u64,
            quarantines: quarantines.items.len() as u64,
        },
        revision: [gc.revision, quarantines.revision, colliding.revision, revision]
            .into_iter()
            .max()
            .unwrap_or(0),
    })
}

/// Newest report of each agent; none for a node that has attachments but no agent.
async fn agents(
    session: &Session,
    attached: &BTreeMap<NodeKey, u64>,
) -> Result<(BTreeMap<NodeKey, Option<NodeAgent>>, u64), Failure> {
    let heard = session.list::<AgentReport>("/v1/agents", None, |_| true).await?;
    let mut agents: BTreeMap<NodeKey, Option<NodeAgent>> =
        attached.keys().map(|node| (node.clone(), None)).collect();
    agents.extend(
        heard.items.into_iter().map(|of| (NodeKey { realm: of.realm, name: of.node }, Some(of.agent))),
    );
    Ok((agents, heard.revision))
}

fn suspect(line: &GcLine, now: Timestamp) -> Finding {
    let GcLine { node, network, address, endpoint, allocation, .. } = line;
    let silent = format!(
        "allocation {allocation} of {endpoint}; node {node} silent for {}; {}",
        text::age(line.heard_at, now),
        gc::reason(line)
    );
    let (class, command, action) = match line.due {
        true => {
            let (node, network) = (node.clone(), network.clone());
            let action = Action::Reclaim { node, network, address: *address, allocation: *allocation };
            (Class::Reclaimable, format!("ipamctl gc --node {}", line.node), action)
        }
        false => (Class::Suspect, format!("ipamctl node gone {node}   (if it is gone)"), Action::None),
    };
    Finding {
        network: Some(network.clone()),
        address: Some(*address),
        node: Some(node.clone()),
        endpoint: Some(endpoint.clone()),
        allocation: Some(*allocation),
        action,
        ..Finding::of(class, Kind::SilentNode, silent, vec![command])
    }
}

fn foreign_host(one: &Quarantine, now: Timestamp) -> Finding {
    let confirmed = one.confirmed_by.as_ref().map(|node| format!(" and {node}")).unwrap_or_default();
    let heard = text::age(one.heard_at, now);
    let of = format!("MAC {}, reported by {}{confirmed}, heard {heard} ago", one.mac, one.reported_by);
    let is_unverified = now.0.saturating_sub(one.heard_at.0) > UNVERIFIED_MS;
    let [end, reserve, adopt] = quarantine::remedies(one).map(|(_, command)| command);
    let (kind, detail, commands, action) = match is_unverified {
        true => {
            let (network, mac, since) = (one.network.clone(), one.mac, one.since);
            let action = Action::EndQuarantine { network, address: one.address, mac, since };
            let detail = format!("quarantined: {of}, and no agent has probed it since");
            (Kind::UnverifiedQuarantine, detail, vec![end, reserve, adopt], action)
        }
        false => {
            (Kind::ForeignHost, format!("used by a foreign host: {of}"), vec![reserve, adopt], Action::None)
        }
    };
    Finding {
        network: Some(one.network.clone()),
        address: Some(one.address),
        macs: vec![one.mac],
        action,
        ..Finding::of(Class::Unknown, kind, detail, commands)
    }
}

fn collision(one: &Allocation) -> Finding {
    let (address, network) = (one.address.addr(), quarantine::in_network(&one.network));
    let detail = format!(
        "two stations answer: {} of {}, and {} of an unknown host; remove that host, or move the endpoint",
        text::or_dash(one.station.as_ref()),
        one.endpoint,
        text::or_dash(one.colliding.as_ref()),
    );
    let commands = vec![format!("ipamctl who-has {address}{network}"), format!("ipamctl release {}", one.id)];
    let action = one.colliding.map_or(Action::None, |mac| Action::ReleaseColliding {
        network: one.network.clone(),
        address,
        allocation: one.id,
        mac,
    });
    Finding {
        network: Some(one.network.clone()),
        address: Some(address),
        node: one.node.clone().map(|name| NodeKey { realm: one.endpoint.realm.clone(), name }),
        endpoint: Some(one.endpoint.clone()),
        allocation: Some(one.id),
        macs: one.station.into_iter().chain(one.colliding).collect(),
        action,
        ..Finding::of(Class::Mismatched, Kind::Collision, detail, commands)
    }
}

fn unready(node: &NodeKey, agent: Option<&NodeAgent>, attached: Option<&u64>) -> Option<Finding> {
    let (kind, detail, command) = match agent {
        Some(agent) if agent.ready => return None,
        Some(agent) => {
            let why = agent.problem.map(|problem| format!(" ({})", problem.as_str())).unwrap_or_default();
            let since = text::moment(agent.since);
            let detail = format!("its agent is heard and not ready{why} since {since}: ADD fails there");
            (Kind::AgentNotReady, detail, format!("ipam-agent doctor   (on node {})", node.name))
        }
        None => {
            let number = text::plural(*attached?, "attached allocation", "attached allocations");
            let detail = format!("{number}, and no agent of the node was ever heard: no task frees them");
            (Kind::NoAgent, detail, format!("ipamctl node gone {node}   (if it is gone)"))
        }
    };
    Some(of_node(node, kind, detail, vec![command]))
}

/// Difference between the journal of an agent and the store.
fn mismatch(node: &NodeKey, agent: &NodeAgent) -> Option<Finding> {
    if agent.inventory_matches {
        return None;
    }
    let detail = format!(
        "its agent's journal has {}, the store has {}, and they differ (heard at {})",
        text::plural(agent.reported_attachments, "attachment", "attachments"),
        agent.attachments,
        text::moment(agent.heard_at),
    );
    let compare = format!("ipam-agent inventory   (on node {})", node.name);
    let take = format!("ipam-agent inventory --take-newer   (on node {})", node.name);
    Some(of_node(node, Kind::Inventory, detail, vec![compare, take]))
}

fn of_node(node: &NodeKey, kind: Kind, detail: String, commands: Vec<String>) -> Finding {
    let node = Some(node.clone());
    Finding { node, ..Finding::of(Class::Mismatched, kind, detail, commands) }
}
