//! An event as HTTP shows it.

use ipam_api::event as shown;
use ipam_api::node_report::AgentProblem;
use ipam_api::time::Timestamp;
use ipam_machine::change::FieldChange;
use ipam_machine::command::Via;
use ipam_machine::{By, Event, EventKind};

pub(super) fn event(event: &Event) -> shown::Event {
    let Event { revision, number, wall_ms, by, kind } = event;
    let mut item = shown::Event {
        revision: *revision,
        number: *number,
        at: Timestamp(*wall_ms),
        event_type: kind.name().to_owned(),
        object: String::new(),
        kind: kind.kind().to_owned(),
        network: None,
        pool: None,
        endpoint: kind.endpoint().cloned(),
        interface: None,
        allocation: None,
        prefix: None,
        owner: None,
        node: None,
        macs: Vec::new(),
        by: self::by(by),
        reason: None,
        comment: by.comment.as_deref().map(str::to_owned),
        changes: Vec::new(),
    };
    if let Some(address) = kind.address() {
        item.object = address.to_string();
        item.network = kind.network();
        item.pool = kind.pool();
    }
    match kind {
        EventKind::Created { name, .. } | EventKind::Deleted { name, .. } => item.object = name.to_string(),
        EventKind::Changed { name, changes, .. } => {
            item.object = name.to_string();
            item.changes = changes.iter().map(field_change).collect();
        }
        EventKind::Allocated(of)
        | EventKind::Released { of, .. }
        | EventKind::Attached(of)
        | EventKind::Detached(of) => {
            item.interface = Some(of.interface.clone());
            item.node = of.node.clone();
            item.allocation = Some(of.allocation.get());
            item.reason = Some(of.reason.as_str().to_owned());
        }
        EventKind::Delegated { of, .. } | EventKind::TakenBack { of, .. } => {
            item.object = of.cidr.to_string();
            (item.network, item.pool) = (Some(of.network.clone()), Some(of.pool.clone()));
            item.prefix = Some(of.prefix.get());
            item.owner = Some(format!("{}/{}", of.owner.realm, of.owner.name));
            if let EventKind::TakenBack { with, released, .. } = kind {
                let why = if *released { "released" } else { "not-refreshed" };
                let with = if *with == of.prefix { String::new() } else { format!(" with {with}") };
                item.reason = Some(format!("{why}{with}"));
            }
        }
        EventKind::Cooled { .. } => {}
        EventKind::Quarantined { mac, by, .. } => {
            item.macs = vec![*mac];
            item.node = Some(by.name.clone());
            item.reason = Some(format!("reported by {by}"));
        }
        EventKind::QuarantineEnded { by, .. } => {
            item.node = by.as_ref().map(|by| by.name.clone());
            item.reason = by.as_ref().map(|by| format!("silent for {by}"));
        }
        EventKind::Collided { of, mac, other, by } => {
            item.macs = vec![*mac, *other];
            item.interface = Some(of.interface.clone());
            item.node = of.node.clone();
            item.allocation = Some(of.allocation.get());
            item.reason = Some(format!("reported by {by}"));
        }
        EventKind::PoolReady { pool, readiness } => {
            item.object = pool.to_string();
            item.reason = Some(readiness.as_str().to_owned());
        }
        EventKind::Waits { endpoint, why } => {
            item.object = endpoint.to_string();
            item.reason = Some(why.as_str().to_owned());
        }
        EventKind::PrefixWaits { of, .. } | EventKind::PrefixWithdrawn { of } => {
            item.object = of.owner.name.to_string();
            item.pool = Some(of.pool.clone());
            item.prefix = Some(of.claim.get());
            item.owner = Some(format!("{}/{}", of.owner.realm, of.owner.name));
            if let EventKind::PrefixWaits { why, .. } = kind {
                item.reason = Some(why.as_str().to_owned());
            }
        }
        EventKind::NodeBooted { node, boot } => {
            item.object = node.to_string();
            item.node = Some(node.name.clone());
            item.reason = Some(boot.id.to_string());
        }
        EventKind::NodeReady { node, readiness } => {
            item.object = node.to_string();
            item.node = Some(node.name.clone());
            let problem = readiness.problem.map_or("not-ready", AgentProblem::as_str);
            item.reason = Some(if readiness.ready { "ready" } else { problem }.to_owned());
        }
        EventKind::ClaimMismatch { node, endpoint, claimed } => {
            item.object = node.to_string();
            item.node = Some(node.name.clone());
            item.reason = Some(format!("{claimed} of {endpoint}"));
        }
        EventKind::Withdrawn { endpoint } => item.object = endpoint.to_string(),
        EventKind::EndpointChanged { endpoint, changes } => {
            item.object = endpoint.to_string();
            item.changes = changes.iter().map(field_change).collect();
        }
        EventKind::LevelRaised { level } => item.object = format!("level {level}"),
        EventKind::PoolConfirmed { epoch, pool } => {
            item.object = pool.to_string();
            item.reason = Some(format!("epoch {epoch}"));
        }
        EventKind::EpochBegun { epoch, from_revision } => {
            item.object = epoch.to_string();
            item.reason = Some(format!("restored from revision {from_revision}"));
        }
        EventKind::EpochConfirmed { epoch } => item.object = epoch.to_string(),
        EventKind::PoolSplit { pool, into, ranges } => {
            item.object = pool.to_string();
            item.reason = Some(format!("{} of its ranges are {into} now", ranges.len()));
        }
        EventKind::Member { id, name, .. } => {
            item.object = name.to_string();
            item.reason = Some(format!("member {id}"));
        }
        EventKind::JournalTrimmed { through, segments, events, bytes } => {
            item.object = "journal".to_owned();
            item.reason =
                Some(format!("{segments} segments through {through}: {events} events, {bytes} bytes"));
        }
    }
    item
}

fn field_change(change: &FieldChange) -> shown::FieldChange {
    shown::FieldChange {
        field: change.field.to_string(),
        from: change.from.to_string(),
        to: change.to.to_string(),
    }
}

fn by(by: &By) -> shown::By {
    let via = match by.via {
        Via::Http => "http",
        Via::Cni => "cni",
        Via::Task => "task",
    };
    shown::By {
        principal: by.principal.to_string(),
        via: via.to_owned(),
        request_id: by.request_id.to_string(),
    }
}
