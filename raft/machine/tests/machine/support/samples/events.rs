//! Of everything that can be said to have happened.

use ipam_machine::command::cause::Claimed;
use ipam_machine::command::{Kind, Text};
use ipam_machine::{Action, By, Event, EventKind, Id};

use ipam_api::name::InterfaceName;
use ipam_machine::change::{FieldChange, FieldName, Notation};
use ipam_machine::event::{AwaitedPrefix, Delegation, Holding, Readiness, Reason, WaitReason};
use ipam_machine::model::MemberStanding;

use super::{command, given_prefix, mac, name, node, not_ready, prefix_owner, reported_boot, request};

/// Each kind of event once.
pub(crate) fn events() -> Vec<(&'static str, Event)> {
    let (address, pool, allocation) = ("10.1.2.5".parse().unwrap(), name("web"), Id::new(1 << 40 | 9));
    let (endpoint, interface): (_, InterfaceName) = (request().endpoint, "eth0".parse().unwrap());
    let holding = Holding {
        network: name("blue"),
        address,
        pool: pool.clone(),
        endpoint,
        interface,
        node: request().node,
        allocation,
        reason: Reason::AllocationReleased,
    };
    let delegation = Delegation {
        network: name("blue"),
        cidr: given_prefix().cidr,
        pool: pool.clone(),
        owner: prefix_owner(),
        prefix: given_prefix().id,
    };
    let all = [
        EventKind::Created { kind: Kind::Network, name: (&name("blue")).into() },
        EventKind::Changed {
            kind: Kind::Subnet,
            name: (&name("lan")).into(),
            changes: vec![FieldChange {
                field: FieldName::Vlan,
                from: Notation::default(),
                to: notation("7"),
            }],
        },
        EventKind::Deleted { kind: Kind::Reservation, name: (&name("kept")).into() },
        EventKind::Allocated(Holding { reason: Reason::AttachmentAdded, ..holding.clone() }),
        EventKind::Released { of: holding.clone(), cools: true },
        EventKind::Cooled { network: name("blue"), address, pool: pool.clone() },
        EventKind::PoolReady { pool: pool.clone(), readiness: Readiness::Exhausted },
        EventKind::JournalTrimmed { through: 3, segments: 2, events: 70_000, bytes: 8 << 20 },
        EventKind::LevelRaised { level: 2 },
        EventKind::EpochBegun { epoch: 2, from_revision: 1 << 40 | 9 },
        EventKind::PoolConfirmed { epoch: 2, pool: pool.clone() },
        EventKind::EpochConfirmed { epoch: 2 },
        EventKind::PoolSplit {
            pool: name("web"),
            into: name("web-2"),
            ranges: vec!["10.1.2.100-10.1.2.200".parse().unwrap()],
        },
        EventKind::Member { id: 4, name: name("n4"), standing: MemberStanding::Learner },
        EventKind::Delegated { of: delegation.clone(), parent: given_prefix().parent },
        EventKind::TakenBack { of: delegation, with: (1 << 40 | 8).into(), released: true },
        EventKind::Attached(Holding { reason: Reason::Reattached, ..holding.clone() }),
        EventKind::Detached(Holding { reason: Reason::Kept, ..holding.clone() }),
        EventKind::Waits { endpoint: request().endpoint, why: WaitReason::PoolExhausted },
        EventKind::Withdrawn { endpoint: request().endpoint },
        EventKind::NodeBooted { node: node(), boot: reported_boot() },
        EventKind::NodeReady { node: node(), readiness: not_ready() },
        EventKind::PrefixWaits { of: awaited_prefix(), why: WaitReason::PoolExhausted },
        EventKind::PrefixWithdrawn { of: awaited_prefix() },
        EventKind::Quarantined {
            network: name("blue"),
            address,
            pool: pool.clone(),
            mac: mac(1),
            by: node(),
        },
        EventKind::QuarantineEnded { network: name("blue"), address, pool, by: Some(node()) },
        EventKind::Collided {
            of: Holding { reason: Reason::Conflict, ..holding },
            mac: mac(1),
            other: mac(2),
            by: node(),
        },
        EventKind::ClaimMismatch {
            node: node(),
            endpoint: request().endpoint,
            claimed: Claimed::Label { key: Text::given("app") },
        },
        EventKind::EndpointChanged {
            endpoint: request().endpoint,
            changes: vec![FieldChange {
                field: FieldName::Uid,
                from: notation("machine-1"),
                to: notation("machine-2"),
            }],
        },
    ];
    let origin = command(Action::Expire).origin;
    let by = By {
        principal: origin.principal,
        via: origin.via,
        request_id: origin.request_id,
        comment: origin.comment,
    };
    let event = |kind| Event { revision: 1 << 40 | 9, number: 2, wall_ms: 77, by: by.clone(), kind };
    all.into_iter().map(|what| (what_name(&what), event(what))).collect()
}

fn what_name(what: &EventKind) -> &'static str {
    match what {
        EventKind::Created { .. } => "created",
        EventKind::Changed { .. } => "changed",
        EventKind::Deleted { .. } => "deleted",
        EventKind::Allocated(_) => "allocated",
        EventKind::Released { .. } => "released",
        EventKind::Cooled { .. } => "cooled",
        EventKind::PoolReady { .. } => "pool-ready",
        EventKind::JournalTrimmed { .. } => "journal-trimmed",
        EventKind::LevelRaised { .. } => "level-raised",
        EventKind::EpochBegun { .. } => "epoch-begun",
        EventKind::PoolConfirmed { .. } => "pool-confirmed",
        EventKind::EpochConfirmed { .. } => "epoch-confirmed",
        EventKind::Member { .. } => "member",
        EventKind::PoolSplit { .. } => "pool-split",
        EventKind::Delegated { .. } => "delegated",
        EventKind::TakenBack { .. } => "taken-back",
        EventKind::Attached(_) => "attached",
        EventKind::Detached(_) => "detached",
        EventKind::Waits { .. } => "waits",
        EventKind::Withdrawn { .. } => "withdrawn",
        EventKind::NodeBooted { .. } => "node-booted",
        EventKind::NodeReady { .. } => "node-ready",
        EventKind::PrefixWaits { .. } => "prefix-waits",
        EventKind::PrefixWithdrawn { .. } => "prefix-withdrawn",
        EventKind::Quarantined { .. } => "quarantined",
        EventKind::QuarantineEnded { .. } => "quarantine-ended",
        EventKind::Collided { .. } => "collided",
        EventKind::ClaimMismatch { .. } => "claim-mismatch",
        EventKind::EndpointChanged { .. } => "endpoint-changed",
    }
}

/// Only the machine makes a value; what was kept is read.
fn notation(text: &str) -> Notation {
    postcard::from_bytes(&postcard::to_stdvec(text).unwrap()).unwrap()
}

fn awaited_prefix() -> AwaitedPrefix {
    AwaitedPrefix { claim: (1 << 40 | 9).into(), pool: name("web"), owner: prefix_owner() }
}
