//! Of everything that can come of it.

use ipam_machine::command::{
    AllocatedMany, Cause, Given, GivenInterface, GivenPool, GivenTo, ListedPrefix, Pending, PendingPrefix,
    Renewed, Stored, Text, UnlistedPrefix,
};
use ipam_machine::{Answer, Applied, Outcome, Refusal};

use ipam_api::Family;
use ipam_machine::event::WaitReason;
use ipam_machine::model::Network;

use super::{
    allocation_metadata, attachment, dns, given_prefix, inventory, lease, meta, name, network, reported_boot,
    request, scope, subnet,
};

/// Each kind of answer once, and a refusal.
pub(crate) fn outcomes() -> Vec<(&'static str, Outcome)> {
    let given = Given {
        allocation: (1 << 40 | 9).into(),
        address: "10.1.2.5/24".parse().unwrap(),
        gateway: Some("10.1.2.1".parse().unwrap()),
        routes: subnet().routes,
        dns: dns(),
        clean_gateway: true,
        vlan: Some(300),
        mtu: Some(9000),
        pool: name("web"),
        checked: true,
        probes_conflicts: true,
        probes_gateway: true,
        lease: Some(lease()),
        mac: Some(Text::given("0a:58:0a:0a:00:4d")),
        metadata: allocation_metadata(),
    };
    let interface = GivenInterface {
        name: "eth0".parse().unwrap(),
        attachment: request().attachment,
        also_attached: vec![attachment()],
        kept: true,
        preallocated: false,
        addresses: vec![given],
    };
    let answers = [
        Answer::Stored {
            created: true,
            revision: 1 << 40 | 7,
            resource: Box::new(Stored::Network(Network { meta: meta(101), spec: network() })),
        },
        Answer::Gone,
        Answer::Draining { held: 3 },
        Answer::Allocated { repeated: true, interfaces: vec![interface] },
        Answer::Released { addresses: request().interfaces[0].addresses.clone(), more: 3, late: true },
        Answer::Steps(vec![Answer::Gone]),
        Answer::Expired { rows: 64 },
        Answer::Trimmed { segments: 2 },
        Answer::Level { level: 2 },
        Answer::Sealed { segment: Some(3) },
        Answer::Confirmed { pools: 1, waiting: 4 },
        Answer::Members { ids: vec![3, 4] },
        Answer::Delegated { repeated: true, prefixes: vec![given_prefix()] },
        Answer::PrefixReleased { cidrs: vec!["10.1.2.128/26".parse().unwrap()], ending: true },
        Answer::Pending(Pending {
            repeated: true,
            why: WaitReason::PoolNotReady,
            cause: Box::new(Cause::NothingFree { pools: vec![name("web")] }),
            since_wall_ms: 7,
        }),
        Answer::Renewed {
            leases: vec![Renewed {
                allocation: (1 << 40 | 9).into(),
                address: "10.1.2.5".parse().unwrap(),
                lease: lease(),
            }],
            more: 3,
        },
        Answer::Heard { boot: reported_boot(), inventory: inventory() },
        Answer::OrphansReleased { addresses: vec!["10.1.2.5".parse().unwrap()], stale: 2 },
        Answer::PrefixPending { repeated: true, pending: Box::new(pending_prefix()) },
        Answer::Probed { recorded: 3, refused: 2 },
        Answer::Reclaimed { addresses: vec!["10.1.2.5".parse().unwrap()], stale: 2 },
        Answer::PodsReported,
        Answer::PrefixesSet {
            prefixes: vec![ListedPrefix::Delegated(given_prefix()), ListedPrefix::Waiting(pending_prefix())],
            released: vec![UnlistedPrefix {
                id: (1 << 40 | 10).into(),
                owner: "conduit-b".parse().unwrap(),
                cidr: Some("10.1.2.128/26".parse().unwrap()),
            }],
            ending: true,
        },
        Answer::AllocatedMany(AllocatedMany {
            pools: vec![GivenPool {
                name: name("web"),
                subnet: name("lan"),
                cidr: "10.1.2.0/24".parse().unwrap(),
                gateway: Some("10.1.2.1".parse().unwrap()),
                routes: subnet().routes,
                dns: dns(),
                vlan: Some(12),
                mtu: Some(9000),
            }],
            addresses: vec![GivenTo {
                endpoint: 1,
                allocation: (1 << 40 | 9).into(),
                address: "10.1.2.5".parse().unwrap(),
                pool: 0,
            }],
            repeated: vec![1],
        }),
        Answer::AllocationsReleased { addresses: vec!["10.1.2.5".parse().unwrap()], gone: 2 },
    ];
    let applied = |answer| Ok(Applied { revision: 1 << 40 | 400, answer, replayed: true });
    let refusal = Refusal {
        cause: Box::new(Cause::AddressesLost {
            pool: name("web"),
            held: 1,
            examples: vec![("10.1.2.5".parse().unwrap(), request().endpoint)],
        }),
        step: Some(3),
        replayed: true,
    };
    let by_quota = Refusal::from(Cause::QuotaExceeded {
        scope: scope(),
        family: Family::V6,
        limit: 20,
        is_own: true,
        used: 19,
        asked: 2,
    });
    let named = answers.into_iter().map(|answer| (answer_name(&answer), applied(answer)));
    named.chain([("refused", Err(refusal)), ("refused-by-quota", Err(by_quota))]).collect()
}

fn answer_name(answer: &Answer) -> &'static str {
    match answer {
        Answer::Stored { .. } => "stored",
        Answer::Gone => "gone",
        Answer::Draining { .. } => "draining",
        Answer::Allocated { .. } => "allocated",
        Answer::Released { .. } => "released",
        Answer::Steps(_) => "steps",
        Answer::Expired { .. } => "expired",
        Answer::Trimmed { .. } => "trimmed",
        Answer::Level { .. } => "level",
        Answer::Sealed { .. } => "sealed",
        Answer::Confirmed { .. } => "confirmed",
        Answer::Members { .. } => "members",
        Answer::Delegated { .. } => "delegated",
        Answer::PrefixReleased { .. } => "prefix-released",
        Answer::Renewed { .. } => "renewed",
        Answer::Pending(_) => "pending",
        Answer::Heard { .. } => "heard",
        Answer::OrphansReleased { .. } => "orphans-released",
        Answer::PrefixPending { .. } => "prefix-pending",
        Answer::Probed { .. } => "probed",
        Answer::Reclaimed { .. } => "reclaimed",
        Answer::PodsReported => "pods-reported",
        Answer::PrefixesSet { .. } => "prefixes-set",
        Answer::AllocatedMany(_) => "allocated-many",
        Answer::AllocationsReleased { .. } => "allocations-released",
    }
}

fn pending_prefix() -> PendingPrefix {
    PendingPrefix {
        claim: (1 << 40 | 9).into(),
        network: name("default"),
        subnet: name("lan"),
        pool: name("web"),
        parent: Some((1 << 40 | 8).into()),
        path: vec!["conduit-a".parse().unwrap(), "node-1".parse().unwrap()],
        realm: name("prod"),
        length: Some(26),
        keep_edges: true,
        ttl_ms: Some(900_000),
        why: WaitReason::PoolNotReady,
        cause: Box::new(Cause::NothingFree { pools: vec![name("web")] }),
        since_wall_ms: 7,
        created_by: Text::given("alice"),
    }
}
