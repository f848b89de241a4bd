//! Of everything that can be said to have happened.

use ipam_machine::command::Kind;
use ipam_machine::{Action, By, Event, Id, What};

use ipam_api::name::InterfaceName;
use ipam_machine::change::{FieldChange, FieldName, Notation};
use ipam_machine::event::{Delegation, Holding, Readiness, Reason, WaitReason};
use ipam_machine::model::MemberStanding;

use super::{command, given_prefix, name, prefix_owner, request};

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
        What::Created { kind: Kind::Network, name: (&name("blue")).into() },
        What::Changed {
            kind: Kind::Subnet,
            name: (&name("lan")).into(),
            changes: vec![FieldChange {
                field: FieldName::Vlan,
                from: Notation::default(),
                to: notation("7"),
            }],
        },
        What::Deleted { kind: Kind::Reservation, name: (&name("kept")).into() },
        What::Allocated(Holding { reason: Reason::AttachmentAdded, ..holding.clone() }),
        What::Released { of: holding.clone(), rests: true },
        What::Cooled { network: name("blue"), address, pool: pool.clone() },
        What::PoolReady { pool: pool.clone(), readiness: Readiness::Exhausted },
        What::JournalTrimmed { through: 3, segments: 2, events: 70_000, bytes: 8 << 20 },
        What::LevelRaised { level: 2 },
        What::EpochBegun { epoch: 2, from_revision: 1 << 40 | 9 },
        What::PoolConfirmed { epoch: 2, pool: pool.clone() },
        What::EpochConfirmed { epoch: 2 },
        What::PoolSplit {
            pool: name("web"),
            into: name("web-2"),
            ranges: vec!["10.1.2.100-10.1.2.200".parse().unwrap()],
        },
        What::Member { id: 4, name: name("n4"), standing: MemberStanding::Learner },
        What::Delegated { of: delegation.clone(), parent: given_prefix().parent },
        What::TakenBack { of: delegation, with: (1 << 40 | 8).into(), released: true },
        What::Attached(Holding { reason: Reason::Reattached, ..holding.clone() }),
        What::Detached(Holding { reason: Reason::Kept, ..holding }),
        What::Waits { endpoint: request().endpoint, why: WaitReason::PoolExhausted },
        What::Withdrawn { endpoint: request().endpoint },
    ];
    let origin = command(Action::Expire).origin;
    let by = By {
        principal: origin.principal,
        via: origin.via,
        request_id: origin.request_id,
        comment: origin.comment,
    };
    let event = |what| Event { revision: 1 << 40 | 9, number: 2, wall_ms: 77, by: by.clone(), what };
    all.into_iter().map(|what| (what_name(&what), event(what))).collect()
}

fn what_name(what: &What) -> &'static str {
    match what {
        What::Created { .. } => "created",
        What::Changed { .. } => "changed",
        What::Deleted { .. } => "deleted",
        What::Allocated(_) => "allocated",
        What::Released { .. } => "released",
        What::Cooled { .. } => "cooled",
        What::PoolReady { .. } => "pool-ready",
        What::JournalTrimmed { .. } => "journal-trimmed",
        What::LevelRaised { .. } => "level-raised",
        What::EpochBegun { .. } => "epoch-begun",
        What::PoolConfirmed { .. } => "pool-confirmed",
        What::EpochConfirmed { .. } => "epoch-confirmed",
        What::Member { .. } => "member",
        What::PoolSplit { .. } => "pool-split",
        What::Delegated { .. } => "delegated",
        What::TakenBack { .. } => "taken-back",
        What::Attached(_) => "attached",
        What::Detached(_) => "detached",
        What::Waits { .. } => "waits",
        What::Withdrawn { .. } => "withdrawn",
    }
}

/// Only the machine makes a value; what was kept is read.
fn notation(text: &str) -> Notation {
    postcard::from_bytes(&postcard::to_stdvec(text).unwrap()).unwrap()
}
