//! One value of everything that enters the log, the rows or the wire between peers, each with a name.
//!
//! The matches without a wildcard are there so that a new variant doesn't compile until it has a sample.

mod actions;
mod enumerations;
mod events;
mod outcomes;
mod rows;

pub(crate) use actions::actions;
pub(crate) use enumerations::enumerations;
pub(crate) use events::events;
pub(crate) use outcomes::outcomes;
pub(crate) use rows::{Rows, all_rows, rows};

use ipam_api::access::{NodeKey, Role};
use ipam_machine::change::FieldName;
use ipam_machine::command::{
    AddressLimits, AgentReadiness, Allocate, AllocateOptions, AllocationMetadata, AutomaticPool,
    AutomaticRules, Controller, ControllerName, Credential, Dns, GivenPrefix, HostPolicyInterface,
    HostPolicySpec, Idempotency, InterfaceRequest, KnownMember, Link, Manager, MaxUnavailable, Metadata,
    NamespaceSpec, NetworkSpec, NodeSpec, OnLinks, Origin, PoolPatterns, PoolSelectors, PoolSpec, Probing,
    Quota, ReportedBoot, ReportedPod, ReservationSpec, Routing, Started, Stickiness, SubnetSpec, Text, Via,
};
use ipam_machine::{Action, Command, Grant, Terms};
use std::collections::BTreeMap;

use ipam_api::mac::MacAddress;
use ipam_api::name::Name;
use ipam_api::node_report::{AgentProblem, Inventory};
use ipam_api::request::AttachmentKey;
use ipam_api::resource::{Lifecycle, PoolSize, Route, ScaleDown, Strategy};
use ipam_machine::model::{Automatic, AutomaticStanding, Lease, Meta, PrefixOwner, QuotaScope};

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub(crate) fn command(action: Action) -> Command {
    let origin = Origin {
        principal: Text::given("alice"),
        via: Via::Cni,
        request_id: Text::given("0190-7"),
        comment: Some(Text::given("because")),
        not_after_ms: Some(90_000),
    };
    let terms = Terms {
        credential: Credential::Token { id: (1 << 40 | 6).into() },
        idempotency: Some(Idempotency { key: Text::given("key-1"), request: 1 << 100 }),
        manager: Manager::Named(Text::given("gitops")),
    };
    Command { origin, terms, action }
}

fn known_member() -> KnownMember {
    KnownMember {
        id: 3,
        name: name("n3"),
        disk_id: Text::given("disk-3"),
        peer_address: Text::given("10.0.0.3:7441"),
        client_url: Text::given("https://10.0.0.3:7440"),
        votes: true,
    }
}

fn attachment() -> AttachmentKey {
    AttachmentKey {
        realm: Name::default_name(),
        node: "node-1".parse().unwrap(),
        config: "net".parse().unwrap(),
        container_id: "c0ffee".parse().unwrap(),
        interface: "eth0".parse().unwrap(),
    }
}

fn reported_boot() -> ReportedBoot {
    ReportedBoot { id: Text::given("boot-1"), number: 7 }
}

fn inventory() -> Inventory {
    let mut inventory = Inventory::default();
    inventory.add(&attachment(), [1 << 40 | 9]);
    inventory
}

fn not_ready() -> AgentReadiness {
    AgentReadiness { ready: false, problem: Some(AgentProblem::SocketUnavailable) }
}

fn metadata() -> Metadata {
    let one = |key: &str, value: &str| BTreeMap::from([(Text::given(key), Text::given(value))]);
    Metadata {
        description: Text::given("what people say"),
        labels: one("site", "vienna"),
        annotations: one("tool", "terraform"),
        managed_by: Some(Text::given("gitops")),
    }
}

fn network() -> NetworkSpec {
    NetworkSpec { name: name("blue"), probing: probing(), metadata: metadata() }
}

fn subnet() -> SubnetSpec {
    let route = Route { destination: "10.9.0.0/16".parse().unwrap(), gateway: "10.1.2.3".parse().unwrap() };
    SubnetSpec {
        name: name("lan"),
        network: name("blue"),
        cidr: "10.1.2.0/24".parse().unwrap(),
        gateway: Some("10.1.2.1".parse().unwrap()),
        vlan: Some(300),
        mtu: Some(9000),
        routes: vec![route],
        dns: dns(),
        automatic: Some(AutomaticRules {
            ranges: vec!["10.1.2.64-10.1.2.127".parse().unwrap()],
            exclude: vec!["10.1.2.70".parse().unwrap()],
            max_size: Some(8),
        }),
        probing: probing(),
        metadata: metadata(),
    }
}

fn probing() -> Probing {
    Probing { conflicts: Some(true), gateway: Some(false), valid_ms: Some(60_000) }
}

fn links() -> Vec<Link> {
    let link = |cidr: &str| Link { network: name("blue"), cidr: cidr.parse().unwrap() };
    vec![link("10.1.2.0/24"), link("2001:db8::/64")]
}

fn mac(last: u8) -> MacAddress {
    MacAddress::new([2, 0, 0, 0, 0, last])
}

fn dns() -> Dns {
    Dns {
        nameservers: vec!["2001:db8::53".parse().unwrap()],
        domain: Some(Text::given("example.org")),
        search: vec![Text::given("a.example.org")],
        options: vec![Text::given("ndots:2")],
    }
}

fn pool() -> PoolSpec {
    PoolSpec {
        name: name("web"),
        subnet: name("lan"),
        network: None,
        ranges: vec!["10.1.2.2-10.1.2.200".parse().unwrap()],
        exclude: vec!["10.1.2.9".parse().unwrap()],
        strategy: Strategy::Sequential,
        cooling_ms: 30_000,
        strict_cooling: true,
        cooling_reserve: 5,
        allow_edges: false,
        gateway: Some("10.1.2.254".parse().unwrap()),
        routes: subnet().routes,
        default: true,
        selectors: selectors(),
        scale_down: ScaleDown::Keep,
        disabled: false,
        terminating: true,
        drains_to: Some(name("web-2")),
        reclaim: Some(false),
        probing: probing(),
        metadata: metadata(),
    }
}

fn selectors() -> PoolSelectors {
    PoolSelectors {
        realms: vec![name("prod")],
        node_names: vec!["node-1".parse().unwrap()],
        node_selector: "zone in (a,b)".parse().unwrap(),
        namespaces: vec!["web".parse().unwrap()],
        namespace_selector: "team=web".parse().unwrap(),
        endpoint_selector: "app=web,tier in (front,back),!legacy".parse().unwrap(),
        network_attachments: vec!["kube-system/macvlan".parse().unwrap()],
    }
}

fn node_spec() -> NodeSpec {
    NodeSpec { realm: name("prod"), name: "node-1".parse().unwrap(), metadata: metadata() }
}

fn namespace() -> NamespaceSpec {
    NamespaceSpec {
        realm: name("prod"),
        name: "web".parse().unwrap(),
        default_pools: pool_patterns(),
        quota: quota(),
        metadata: metadata(),
    }
}

fn host_policy() -> HostPolicySpec {
    HostPolicySpec {
        name: name("static-ip"),
        realm: name("prod"),
        node_selector: "zone=a".parse().unwrap(),
        interfaces: vec![HostPolicyInterface {
            name: "eth1".parse().unwrap(),
            ipv4_pools: vec![name("web")],
            ipv6_pools: vec![name("web-6")],
            clean_gateway: true,
        }],
        capture: [(Text::given("a"), Text::given("ippool.web.allocate"))].into(),
        desired_state: Text::given(r#"{"interfaces":[]}"#),
        max_unavailable: MaxUnavailable::Percent(50),
        metadata: metadata(),
    }
}

fn quota() -> Quota {
    Quota {
        whole: AddressLimits { ipv4: Some(500), ipv6: None },
        per_application: AddressLimits { ipv4: Some(20), ipv6: Some(0) },
        applications: [(ControllerName::of(&controller()), AddressLimits { ipv4: None, ipv6: Some(40) })]
            .into(),
    }
}

fn scope() -> QuotaScope {
    let application = Some(ControllerName::of(&controller()));
    QuotaScope { realm: name("prod"), namespace: "web".parse().unwrap(), application }
}

fn reservation() -> ReservationSpec {
    let addresses = vec!["10.1.2.7".parse().unwrap(), "2001:db8::/64".parse().unwrap()];
    let endpoint = Some(request().endpoint);
    ReservationSpec { name: name("kept"), network: name("blue"), addresses, endpoint, metadata: metadata() }
}

fn started() -> Started {
    Started { boot_id: Text::given("boot-1"), at_us: 123_456_789, start_ticks: Some(12_345) }
}

fn pool_patterns() -> PoolPatterns {
    PoolPatterns {
        ipv4: vec![(&name("web")).into(), "lan-*".parse().unwrap()],
        ipv6: vec![(&name("six")).into()],
    }
}

/// Request on a link of the host.
fn on_links() -> OnLinks {
    let mut request = request();
    request.interfaces[0].link_addresses = vec!["10.1.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()];
    OnLinks(request)
}

fn request() -> Allocate {
    let key = attachment();
    let interface = InterfaceRequest {
        name: key.interface.clone(),
        subnets: vec![name("lan"), name("lan6")],
        pools: pool_patterns(),
        default_pools: PoolPatterns { ipv4: Vec::new(), ipv6: vec!["lan6-?".parse().unwrap()] },
        families: vec![ipam_api::Family::V4, ipam_api::Family::V6],
        addresses: vec!["10.1.2.5".parse().unwrap(), "2001:db8::5".parse().unwrap()],
        mac: Some(Text::given("0a:58:0a:0a:00:4d")),
        network_attachment: Some("kube-system/macvlan".parse().unwrap()),
        link_addresses: Vec::new(),
    };
    Allocate {
        endpoint: "pod/prod/web/w0".parse().unwrap(),
        uid: Some(Text::given("uid-1")),
        labels: [(Text::given("app"), Text::given("web"))].into(),
        node: Some(key.node.clone()),
        attachment: Some(key),
        stickiness: Stickiness {
            controller: Some(controller()),
            sticky: Some(true),
            scale_down: Some(ScaleDown::Keep),
        },
        lifecycle: Lifecycle::Attached,
        interfaces: vec![interface],
        automatic_pool: Some(AutomaticPool { size: PoolSize::Flexible(2), replicas: 3, reclaim: true }),
        started: Some(started()),
        options: options(),
        routing: routing(),
    }
}

fn controller() -> Controller {
    Controller {
        group: Text::given("apps"),
        kind: Text::given("StatefulSet"),
        name: "w".parse().unwrap(),
        uid: Some(Text::given("uid-2")),
    }
}

fn reported_pod() -> ReportedPod {
    ReportedPod {
        uid: Text::given("u1"),
        endpoint: "pod/web/w-0".parse().unwrap(),
        node: "node-1".parse().unwrap(),
        labels: [(Text::given("app"), Text::given("w"))].into(),
        controllers: vec![controller()],
    }
}

fn automatic() -> Automatic {
    Automatic {
        realm: name("prod"),
        namespace: "web".parse().unwrap(),
        controller: controller(),
        interface: "eth0".parse().unwrap(),
        size: PoolSize::Flexible(2),
        replicas: 3,
        standing: AutomaticStanding::Elsewhere,
        created_by: Some(node()),
    }
}

fn routing() -> Routing {
    let interface = || "eth0".parse().unwrap();
    let clean = vec![interface()];
    Routing { routes: subnet().routes, clean, default_interface: Some(interface()) }
}

fn options() -> AllocateOptions {
    AllocateOptions {
        ttl_ms: Some(600_000),
        adopt: true,
        take_over: true,
        wait: true,
        metadata: allocation_metadata(),
    }
}

fn allocation_metadata() -> AllocationMetadata {
    AllocationMetadata {
        hostname: Some(Text::given("db-07.example.com")),
        description: Text::given("by the door"),
    }
}

fn lease() -> Lease {
    Lease { ttl_ms: 600_000, until_ms: 601_000, until_wall_ms: 1_795_000_601_000 }
}

fn prefix_owner() -> PrefixOwner {
    PrefixOwner { realm: name("prod"), name: "node-1".parse().unwrap() }
}

fn meta(id: u64) -> Meta {
    Meta {
        id,
        revision: id + 1000,
        created_wall_ms: 11,
        created_by: Text::given("alice"),
        updated_wall_ms: 12,
        updated_by: Text::given("bob"),
        updated_fields: vec![FieldName::Ranges].into(),
    }
}

fn node() -> NodeKey {
    NodeKey { realm: name("prod"), name: "node-1".parse().unwrap() }
}

fn grant() -> Grant {
    let labels = "team=web,zone in (a,b)".parse().unwrap();
    Grant { role: Role::Node, node: Some(node()), realms: vec![name("prod")], labels, allow_shared: true }
}

fn given_prefix() -> GivenPrefix {
    GivenPrefix {
        id: (1 << 40 | 9).into(),
        cidr: "10.1.2.128/26".parse().unwrap(),
        network: name("blue"),
        subnet: name("lan"),
        pool: name("web"),
        parent: Some((1 << 40 | 8).into()),
        path: vec!["conduit".parse().unwrap(), "node-1".parse().unwrap()],
        realm: name("prod"),
        owner: "node-1".parse().unwrap(),
        keep_edges: true,
        ttl_ms: Some(900_000),
        ends_in_ms: Some(899_000),
        children: 4,
        created_wall_ms: 14,
        created_by: Text::given("alice"),
    }
}
