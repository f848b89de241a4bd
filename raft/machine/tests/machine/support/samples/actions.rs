//! Of everything that a command can ask for.

use ipam_api::node_report::OrphanEvidence;
use ipam_machine::Action;
use ipam_machine::command::{
    AllocateMany, ChangeMembers, ConfirmEpoch, CreateToken, Delegate, Delete, EndController, EndIncarnation,
    EndQuarantine, Expect, Heartbeat, JoinMember, Kind, Leases, Orphan, PoolSpec, Precondition, PrefixLevel,
    PrefixSource, ProbeResult, Purpose, Put, Reclaim, ReclaimReason, ReleaseAttachment, ReleaseAttachmentOf,
    ReleaseOrphans, Renew, ReportPods, ReportProbes, ScaleController, SetPrefixes, SplitPool, Text,
    Transaction,
};

use super::{
    attachment, controller, grant, host_policy, inventory, known_member, links, mac, name, namespace,
    network, node, node_spec, not_ready, on_links, pool, reported_boot, reported_pod, request, reservation,
    started, subnet,
};

/// Each kind of action once.
pub(crate) fn actions() -> Vec<(&'static str, Action)> {
    let precondition = Precondition {
        kind: Kind::Pool,
        name: (&name("web")).into(),
        expect: Expect::Revision(1 << 40 | 300),
    };
    let all = [
        Action::PutNetwork(Put { spec: network(), expect: Expect::Anything }),
        Action::PutSubnet(Put { spec: subnet(), expect: Expect::Absent }),
        Action::PutPool(Put {
            spec: PoolSpec { network: Some(name("blue")), ..pool() },
            expect: Expect::Revision(1 << 40 | 7),
        }),
        Action::PutReservation(Put { spec: reservation(), expect: Expect::Anything }),
        Action::Delete(Delete {
            kind: Kind::Pool,
            name: (&name("web")).into(),
            expect: Expect::Absent,
            drain: true,
        }),
        Action::Allocate(request()),
        Action::ReleaseAttachment(ReleaseAttachment { key: attachment(), started: started() }),
        Action::ReleaseAllocation { id: (1 << 40 | 300).into() },
        Action::ReleaseEndpoint { key: "host/db-07".parse().unwrap() },
        Action::Transaction(Transaction {
            preconditions: vec![precondition],
            steps: vec![Action::Expire, Action::ReleaseAllocation { id: 5.into() }],
        }),
        Action::Expire,
        Action::CreateToken(CreateToken {
            name: name("ci"),
            purpose: Purpose::Join,
            grant: grant(),
            ttl_ms: Some(3_600_000),
            description: Text::given("for nodes"),
            secret_hash: [7; 32],
            replaces: true,
        }),
        Action::RotateToken { name: name("ci"), secret_hash: [8; 32], expect: Expect::Revision(5) },
        Action::Join { node: node(), secret_hash: [9; 32] },
        Action::TrimJournal { through: 3 },
        Action::RaiseLevel { level: 2 },
        Action::SealJournal,
        Action::ConfirmEpoch(ConfirmEpoch { epoch: 2, pools: Some(vec![name("web")]) }),
        Action::JoinMember(JoinMember {
            name: name("n4"),
            disk_id: Text::given("disk-4"),
            peer_address: Text::given("10.0.0.4:7441"),
            client_url: Text::given("https://10.0.0.4:7440"),
            known: vec![known_member()],
        }),
        Action::Delegate(delegate()),
        Action::DelegateOrWait(delegate()),
        Action::ReleasePrefix { id: (1 << 40 | 9).into() },
        Action::ChangeMembers(ChangeMembers {
            promote: vec![4],
            remove: vec![3],
            voters: vec![1, 2, 3],
            known: vec![known_member()],
        }),
        Action::PutNode(Put { spec: node_spec(), expect: Expect::Anything }),
        Action::PutNamespace(Put { spec: namespace(), expect: Expect::Absent }),
        Action::SplitPool(SplitPool {
            name: name("web"),
            into: name("web-2"),
            ranges: vec!["10.1.2.100-10.1.2.200".parse().unwrap()],
            expect: Expect::Revision(5),
        }),
        Action::ScaleController(ScaleController {
            realm: name("prod"),
            namespace: "web".parse().unwrap(),
            controller: controller(),
            replicas: 3,
            start: 1,
        }),
        Action::Renew(Renew { which: Leases::Endpoint("host/db-07".parse().unwrap()), ttl_ms: Some(5_000) }),
        Action::EndController(EndController {
            realm: name("prod"),
            namespace: "web".parse().unwrap(),
            controller: controller(),
        }),
        Action::RenewToken,
        Action::Heartbeat(Heartbeat {
            node: node(),
            boot: reported_boot(),
            readiness: not_ready(),
            agent_version: Text::given("1.2.0-rc.1+g7"),
            links: links(),
            inventory: inventory(),
        }),
        Action::ReleaseOrphans(ReleaseOrphans {
            node: node(),
            orphans: vec![Orphan {
                config: attachment().config,
                container_id: attachment().container_id,
                interface: attachment().interface,
                allocations: vec![(1 << 40 | 300).into()],
                evidence: OrphanEvidence::EarlierBoot,
            }],
        }),
        Action::ReleaseAttachmentOf(ReleaseAttachmentOf {
            release: ReleaseAttachment { key: attachment(), started: started() },
            endpoint: "pod/web/w-0".parse().unwrap(),
            uid: Text::given("u1"),
        }),
        Action::ReportProbes(ReportProbes {
            node: node(),
            results: vec![ProbeResult {
                network: name("blue"),
                address: "10.1.2.5".parse().unwrap(),
                macs: vec![mac(1), mac(2)],
                allocation: Some((1 << 40 | 300).into()),
            }],
        }),
        Action::EndQuarantine(EndQuarantine { network: name("blue"), address: "10.1.2.5".parse().unwrap() }),
        Action::Reclaim(Reclaim {
            node: node(),
            reason: ReclaimReason::NodeSilent { grace_ms: 300_000 },
            allocations: vec![(1 << 40 | 300).into()],
        }),
        Action::EndIncarnation(EndIncarnation {
            endpoint: "pod/web/w-0".parse().unwrap(),
            uid: Text::given("u1"),
            allocations: vec![(1 << 40 | 300).into()],
        }),
        Action::AllocateOnLinks(on_links()),
        Action::ReportPods(ReportPods {
            realm: name("default"),
            pods: vec![reported_pod()],
            gone: vec![Text::given("u0")],
            complete: true,
        }),
        Action::SetPrefixes(SetPrefixes {
            from: PrefixSource::Prefix((1 << 40 | 8).into()),
            realm: name("prod"),
            prefixes: delegate().levels,
        }),
        Action::PutHostPolicy(Put { spec: host_policy(), expect: Expect::Absent }),
        Action::AllocateMany(Box::new(AllocateMany {
            request: request(),
            others: vec!["db-08".parse().unwrap(), "db-09".parse().unwrap()],
        })),
        Action::ReleaseAllocations { ids: vec![(1 << 40 | 300).into(), 5.into()] },
    ];
    all.into_iter().map(|action| (action_name(&action), action)).collect()
}

fn action_name(action: &Action) -> &'static str {
    match action {
        Action::PutNetwork(_) => "put-network",
        Action::PutSubnet(_) => "put-subnet",
        Action::PutPool(_) => "put-pool",
        Action::PutNode(_) => "put-node",
        Action::PutNamespace(_) => "put-namespace",
        Action::PutReservation(_) => "put-reservation",
        Action::Delete(_) => "delete",
        Action::Allocate(_) => "allocate",
        Action::ReleaseAttachment(_) => "release-attachment",
        Action::ReleaseAllocation { .. } => "release-allocation",
        Action::ReleaseEndpoint { .. } => "release-endpoint",
        Action::Transaction(_) => "transaction",
        Action::Expire => "expire",
        Action::CreateToken(_) => "create-token",
        Action::RotateToken { .. } => "rotate-token",
        Action::Join { .. } => "join",
        Action::RenewToken => "renew-token",
        Action::Heartbeat(_) => "heartbeat",
        Action::ReleaseOrphans(_) => "release-orphans",
        Action::TrimJournal { .. } => "trim-journal",
        Action::RaiseLevel { .. } => "raise-level",
        Action::SealJournal => "seal-journal",
        Action::ConfirmEpoch(_) => "confirm-epoch",
        Action::JoinMember(_) => "join-member",
        Action::ChangeMembers(_) => "change-members",
        Action::SplitPool(_) => "split-pool",
        Action::Delegate(_) => "delegate",
        Action::DelegateOrWait(_) => "delegate-or-wait",
        Action::ReleasePrefix { .. } => "release-prefix",
        Action::ScaleController(_) => "scale-controller",
        Action::Renew(_) => "renew",
        Action::EndController(_) => "end-controller",
        Action::ReleaseAttachmentOf(_) => "release-attachment-of",
        Action::ReportProbes(_) => "report-probes",
        Action::EndQuarantine(_) => "end-quarantine",
        Action::Reclaim(_) => "reclaim",
        Action::EndIncarnation(_) => "end-incarnation",
        Action::ReportPods(_) => "report-pods",
        Action::SetPrefixes(_) => "set-prefixes",
        Action::AllocateOnLinks(_) => "allocate-on-links",
        Action::PutHostPolicy(_) => "put-host-policy",
        Action::AllocateMany(_) => "allocate-many",
        Action::ReleaseAllocations { .. } => "release-allocations",
    }
}

pub(crate) fn delegate() -> Delegate {
    Delegate {
        from: PrefixSource::Pool(name("web")),
        realm: name("prod"),
        levels: vec![PrefixLevel {
            owner: "node-1".parse().unwrap(),
            length: Some(26),
            keep_edges: true,
            ttl_ms: Some(900_000),
        }],
    }
}
