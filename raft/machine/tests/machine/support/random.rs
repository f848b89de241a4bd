//! Commands at random, in a world so small that they get in each other's way.

mod agent;
mod automatic;
mod bulk;
mod change;
mod interfaces;
mod options;
mod prefix;
mod probes;
mod put;
mod sticky;

use ipam_api::access::Role;
use ipam_machine::{Action, Command, Grant, State, Terms};
use std::collections::BTreeMap;
use std::net::IpAddr;

use ipam_api::Family;
use ipam_api::address::{AddressRange, number};
use ipam_api::limits::TOMBSTONE_TTL_MS;
use ipam_api::name::{Name, NamePattern, ResourceName};
use ipam_api::request::AttachmentKey;
use ipam_api::resource::{EndpointKind, Lifecycle, ScaleDown, Strategy};
use ipam_machine::command::{
    Allocate, AllocateOptions, Delete, Expect, InterfaceRequest, Kind, Metadata, Origin, PoolPatterns,
    PoolSpec, Precondition, Put, ReleaseAttachment, Started, Stickiness, Text, Transaction, Via,
};
use ipnet::IpNet;

/// Subnets with their networks and addresses. The last one overlaps with the first.
const SUBNETS: [(&str, &str, &str); 6] = [
    ("lan", "default", "10.0.0.0/28"),
    ("six", "default", "2001:db8::/125"),
    ("azure", "blue", "10.0.0.0/29"),
    ("link", "default", "10.0.1.0/31"),
    ("free", "default", "10.0.2.0/28"),
    ("wide", "default", "10.0.0.0/27"),
];
pub(crate) const POOLS: [(&str, &str); 7] =
    [("a", "lan"), ("b", "lan"), ("c", "six"), ("d", "six"), ("e", "azure"), ("f", "link"), ("g", "lan")];
const NODES: [&str; 3] = ["default/n1", "default/n2", "prod/n1"];
const POLICIES: [&str; 2] = ["static-ip", "uplink"];
const NAMESPACES: [&str; 3] = ["default/web", "default/default", "prod/default"];
/// Commands that make the world before anything else happens in it.
const FOUNDING: u64 = 9;

/// A number that decides everything; the next one follows from it (splitmix64).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick_any<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> Option<&'a T> {
        (!all.is_empty()).then(|| self.pick(all))
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }
}

/// The part of a subnet that a pool mostly has: thirds for the three of a large one.
pub(crate) fn part(subnet: &str, pool: &str) -> AddressRange {
    let of = SUBNETS.iter().find(|(name, ..)| *name == subnet).unwrap();
    let whole = AddressRange::of_cidr(of.2.parse().unwrap());
    let third = (whole.last() - whole.first()).div_ceil(3);
    let number = match pool {
        "a" | "c" | "e" => 0,
        "b" | "d" => 1,
        "g" => 2,
        _ => return whole,
    };
    let first = whole.first() + third * number;
    let last = (first + third).min(whole.last() + 1) - 1;
    let family = whole.family();
    AddressRange::new(family.address(first), family.address(last.max(first))).unwrap()
}

/// Draws commands; knows the state only to aim at what exists.
pub(crate) struct Draw<'a> {
    pub(crate) dice: Dice,
    pub(crate) state: &'a State,
    /// Ids that allocations had at any time.
    pub(crate) issued: &'a [u64],
    /// Previous allocation requests.
    pub(crate) asked: &'a [Allocate],
    /// Number of previous commands.
    pub(crate) index: u64,
}

impl Draw<'_> {
    pub(crate) fn log_time_ms(&mut self, now: u64) -> u64 {
        let grace = self.state.header().no_lease_ends_before_ms;
        if grace > now && self.dice.chance(10) {
            return (grace - 1 + self.dice.below(3)).max(now);
        }
        match self.dice.below(100) {
            0 => now + TOMBSTONE_TTL_MS,
            1..=3 => now.saturating_sub(self.dice.below(50)),
            4..=13 => now + self.dice.below(300),
            14..=16 => now + 500 + self.dice.below(1000),
            _ => now + self.dice.below(20),
        }
    }

    pub(crate) fn command(&mut self, now: u64) -> Command {
        let action = if self.index < FOUNDING {
            self.founding()
        } else if self.dice.chance(6) {
            self.transaction()
        } else {
            self.single(true)
        };
        let not_after_ms = self.dice.chance(3).then(|| (now + 10).saturating_sub(self.dice.below(20)));
        let (principal, request_id) =
            (Text::given(self.dice.pick(&["alice", "bob"])), Text::given("request"));
        Command {
            origin: Origin { principal, via: Via::Http, request_id, comment: None, not_after_ms },
            terms: Terms::of(Grant::of(Role::Admin)),
            action,
        }
    }

    fn founding(&mut self) -> Action {
        match usize::try_from(self.index).unwrap() {
            0 => self.put_network("blue", Expect::Anything),
            i @ 1..=5 => self.put_subnet(SUBNETS[i - 1], Expect::Anything),
            i => self.put_pool(POOLS[(i - 6) * 2 % 5], Expect::Anything),
        }
    }

    fn transaction(&mut self) -> Action {
        let preconditions = (0..self.dice.below(3)).map(|_| {
            let (kind, name) = self.named();
            Precondition { expect: self.expect(kind, &name), kind, name }
        });
        let preconditions = preconditions.collect();
        // A step's expectation of an earlier step would need an unknown revision.
        let steps = (0..self.dice.below(4)).map(|_| self.single(false)).collect();
        Action::Transaction(Transaction { preconditions, steps })
    }

    fn single(&mut self, with_revisions: bool) -> Action {
        let expect = |draw: &mut Self, kind, name: &str| match draw.dice.chance(10) {
            true if with_revisions => draw.expect(kind, &ResourceName::new(name).unwrap()),
            true => Expect::Absent,
            false => Expect::Anything,
        };
        match self.dice.below(100) {
            0 => {
                let expect = expect(self, Kind::Network, "blue");
                self.put_network("blue", expect)
            }
            1..=3 => {
                let subnet = SUBNETS[usize::try_from(self.dice.below(6)).unwrap()];
                let expect = expect(self, Kind::Subnet, subnet.0);
                self.put_subnet(subnet, expect)
            }
            4..=6 => {
                let expect = expect(self, Kind::Pool, "a");
                self.split_pool(if expect == Expect::Absent { Expect::Anything } else { expect })
            }
            7 | 8 if self.automatic_pool().is_some() => self.put_automatic_pool(),
            7..=17 => {
                let pool = POOLS[usize::try_from(self.dice.below(7)).unwrap()];
                let expect = expect(self, Kind::Pool, pool.0);
                self.put_pool(pool, expect)
            }
            18 => {
                let (kind, name) = match self.dice.chance(50) {
                    true => (Kind::Node, self.dice.pick(&NODES)),
                    false => (Kind::Namespace, self.dice.pick(&NAMESPACES)),
                };
                let expect = expect(self, kind, name);
                self.put_in_realm(kind, name, expect)
            }
            19 if self.dice.chance(50) => {
                let name = self.dice.pick(&POLICIES);
                let expect = expect(self, Kind::HostPolicy, name);
                self.put_host_policy(name, expect)
            }
            19..=22 => {
                let name = self.dice.pick(&["r1", "r2"]);
                let expect = expect(self, Kind::Reservation, name);
                self.put_reservation(name, expect)
            }
            23..=25 => {
                let (kind, name) = self.named();
                let expect = if with_revisions { self.expect(kind, &name) } else { Expect::Anything };
                Action::Delete(Delete { kind, name, expect, drain: self.dice.chance(50) })
            }
            26..=36 => self.prefix(),
            37..=73 => {
                let repeat = !self.asked.is_empty() && self.dice.chance(20);
                let request = if repeat { self.repeat() } else { self.allocate() };
                if self.dice.chance(10) {
                    return self.many(request);
                }
                let adopts = !repeat && self.dice.chance(12);
                Action::from(match (adopts, repeat) {
                    (true, _) => self.adopt(request),
                    (_, true) => request,
                    (false, false) => self.wait(request),
                })
            }
            74 => {
                if self.dice.chance(70) {
                    self.scale()
                } else {
                    self.end()
                }
            }
            75 => self.heartbeat(),
            76 => self.orphans(),
            77 => {
                if self.dice.chance(50) {
                    self.orphans()
                } else {
                    self.end_incarnation()
                }
            }
            98 => self.probe_action(),
            78..=84 => {
                let key = self.attachment();
                let release = ReleaseAttachment { started: self.started(&key), key };
                if self.dice.chance(60) {
                    Action::ReleaseAttachment(release)
                } else {
                    self.release_of(release)
                }
            }
            85..=90 if !self.issued.is_empty() => {
                if self.dice.chance(30) {
                    return self.release_many();
                }
                let i = usize::try_from(self.dice.below(self.issued.len() as u64)).unwrap();
                Action::ReleaseAllocation { id: self.issued[i].into() }
            }
            85..=93 => Action::ReleaseEndpoint { key: self.endpoint() },
            94..=97 => Action::Renew(self.renew()),
            _ if self.dice.chance(60) => self.report_pods(),
            _ => Action::Expire,
        }
    }

    fn named(&mut self) -> (Kind, ResourceName) {
        if let (Some(pool), true) = (self.automatic_pool(), self.dice.chance(25)) {
            return (Kind::Pool, (&pool.name).into());
        }
        let (kind, name) = match self.dice.below(10) {
            0 => (Kind::Network, self.dice.pick(&["default", "blue"])),
            1 | 2 => (Kind::Subnet, SUBNETS[usize::try_from(self.dice.below(6)).unwrap()].0),
            3 if self.dice.chance(30) => (Kind::HostPolicy, self.dice.pick(&POLICIES)),
            3 => (Kind::Reservation, self.dice.pick(&["r1", "r2"])),
            4 => (Kind::Node, self.dice.pick(&NODES)),
            5 => (Kind::Namespace, self.dice.pick(&NAMESPACES)),
            6 => (Kind::Pool, self.dice.pick(&["s", "t"])),
            _ => (Kind::Pool, POOLS[usize::try_from(self.dice.below(7)).unwrap()].0),
        };
        (kind, ResourceName::new(name).unwrap())
    }

    fn expect(&mut self, kind: Kind, name: &ResourceName) -> Expect {
        let present = self.state.meta(kind, name).map_or(1, |meta| meta.revision);
        match self.dice.below(8) {
            0 => Expect::Absent,
            1 => Expect::Revision(present - 1),
            2..=4 => Expect::Revision(present),
            _ => Expect::Anything,
        }
    }

    pub(crate) fn metadata(&mut self) -> Metadata {
        Metadata { description: Text::given(self.dice.pick(&["", "", "", "changed"])), ..Metadata::default() }
    }

    fn put_pool(&mut self, (name, subnet): (&str, &str), expect: Expect) -> Action {
        let subnet = if self.dice.chance(4) { self.dice.pick(&["lan", "six", "azure"]) } else { subnet };
        let ranges = match self.dice.below(10) {
            0 => Vec::new(),
            // A part of the subnet that is mostly its own, or what others may want as well.
            1..=6 => vec![part(subnet, name)],
            _ => self.ranges(subnet, 3),
        };
        let exclude = if self.dice.chance(50) { Vec::new() } else { self.ranges(subnet, 2) };
        let near = if self.dice.chance(3) { "six" } else { subnet };
        let (gateway, through) = (self.range(near, 1).first_address(), self.range(near, 1).first_address());
        let spec = PoolSpec {
            name: Name::new(name).unwrap(),
            subnet: Name::new(subnet).unwrap(),
            network: self.dice.chance(10).then(|| Name::new(self.dice.pick(&["default", "blue"])).unwrap()),
            ranges,
            exclude,
            strategy: if self.dice.chance(50) { Strategy::Next } else { Strategy::Sequential },
            cooling_ms: [0, 30, 200][usize::try_from(self.dice.below(3)).unwrap()],
            strict_cooling: self.dice.chance(30),
            cooling_reserve: if self.dice.chance(60) { 0 } else { self.dice.below(4) },
            allow_edges: self.dice.chance(30),
            gateway: self.dice.chance(30).then_some(gateway),
            routes: self.routes(through),
            default: self.dice.chance(40),
            selectors: self.selectors(),
            scale_down: if self.dice.chance(20) { ScaleDown::Keep } else { ScaleDown::Release },
            disabled: self.dice.chance(4),
            terminating: self.dice.chance(3),
            drains_to: self.drains_to(),
            reclaim: None,
            probing: self.probing(),
            metadata: self.metadata(),
        };
        Action::PutPool(Put { spec, expect })
    }

    fn ranges(&mut self, subnet: &str, most: u64) -> Vec<AddressRange> {
        let count = 1 + self.dice.below(most);
        let subnet = if self.dice.chance(2) { "six" } else { subnet };
        (0..count).map(|_| self.range(subnet, 17)).collect()
    }

    /// A range that begins in a subnet, and rarely ends behind it.
    fn range(&mut self, subnet: &str, longest: u64) -> AddressRange {
        let of = SUBNETS.iter().find(|(name, ..)| *name == subnet).unwrap();
        let cidr: IpNet = of.2.parse().unwrap();
        let (base, last) = (number(cidr.network()), number(cidr.broadcast()));
        let first = base + u128::from(self.dice.below(1 + u64::try_from(last - base).unwrap()));
        let end = first + u128::from(self.dice.below(longest));
        let end = if self.dice.chance(97) { end.min(last) } else { end };
        let family = Family::of(cidr.addr());
        AddressRange::new(family.address(first), family.address(end)).unwrap()
    }

    fn endpoint(&mut self) -> ipam_api::resource::EndpointKey {
        self.dice.pick(&["pod/web/w-0", "pod/web/w-1", "host/h0", "host/prod/default/h0"]).parse().unwrap()
    }

    fn attachment(&mut self) -> AttachmentKey {
        AttachmentKey {
            realm: Name::default_name(),
            node: self.dice.pick(&["n1", "n2"]).parse().unwrap(),
            config: "net".parse().unwrap(),
            container_id: self.dice.pick(&["c1", "c2"]).parse().unwrap(),
            interface: self.dice.pick(&["eth0", "eth1"]).parse().unwrap(),
        }
    }

    /// Start of a process, mostly from the node's present boot, sometimes from one before or after it. Mostly
    /// with a kernel tick; sometimes of a process that was delayed before its timestamp.
    pub(crate) fn started(&mut self, key: &AttachmentKey) -> Started {
        let node = self.state.boots.iter().map(|(_, row)| row).find(|row| row.name == key.node);
        let present = node.and_then(|row| row.present()).map_or("b0", |boot| &*boot.earliest.boot_id);
        let number: u64 = present[1..].parse().unwrap();
        let number = match self.dice.below(100) {
            0..=4 => number + 1 + self.dice.below(2),
            5..=13 => number.saturating_sub(1 + self.dice.below(3)),
            14 => number.saturating_sub(1 + self.dice.below(6)),
            _ => number,
        };
        let began = self.index + self.dice.below(8);
        let delay = if self.dice.chance(10) { self.dice.below(20) } else { 0 };
        let start_ticks = self.dice.chance(90).then_some(began / 3);
        Started { boot_id: Text::given(format!("b{number}")), at_us: began + delay, start_ticks }
    }

    /// The same once more, sometimes by a process that began later, rarely with another request.
    fn repeat(&mut self) -> Allocate {
        let recent = self.asked.len().saturating_sub(12);
        let i = recent + usize::try_from(self.dice.below((self.asked.len() - recent) as u64)).unwrap();
        let mut again = self.asked[i].clone();
        if let (Some(key), true) = (again.attachment.clone(), self.dice.chance(40)) {
            again.started = Some(self.started(&key));
        }
        if let (Some(key), true) = (again.attachment.as_mut(), self.dice.chance(30)) {
            // The same endpoint in another sandbox, perhaps on another node.
            let other = self.attachment();
            (key.node, key.container_id) = (other.node, other.container_id);
            let key = key.clone();
            again.started = Some(self.started(&key));
        }
        if again.attachment.is_some() && self.dice.chance(40) {
            self.next_interface(&mut again);
        }
        if self.dice.chance(20) {
            again.routing = self.routing();
        }
        if self.dice.chance(10) {
            again.stickiness = self.stickiness();
        }
        if let (Some(pool), true) = (&mut again.automatic_pool, self.dice.chance(40)) {
            pool.replicas = u32::try_from(self.dice.below(5)).unwrap();
        }
        if self.dice.chance(20) {
            let name = again.interfaces[0].name.to_string();
            again.interfaces[0] = self.request(&name);
        }
        again
    }

    fn labels(&mut self) -> BTreeMap<Text, Text> {
        let app = self.dice.pick(&["", "", "a", "b", "c"]);
        if app.is_empty() { BTreeMap::new() } else { [(Text::given("app"), Text::given(app))].into() }
    }

    fn allocate(&mut self) -> Allocate {
        let attachment = self.dice.chance(65).then(|| self.attachment());
        let mut names = vec!["eth0", "eth1", "eth2"];
        if let Some(key) = &attachment {
            names.retain(|name| *name == key.interface.as_str() || self.dice.chance(20));
        } else {
            names.retain(|_| self.dice.chance(50));
        }
        if names.is_empty() {
            names.push("eth0");
        }
        let ttl_ms = (attachment.is_none() && self.dice.chance(50)).then(|| self.ttl_ms());
        let may_last = ttl_ms.is_none() || self.dice.chance(5);
        let mut request = Allocate {
            endpoint: self.endpoint(),
            uid: self.dice.chance(40).then(|| Text::given(self.dice.pick(&["x", "y"]))),
            labels: self.labels(),
            // Without `node` no heartbeat renews the lease.
            node: (ttl_ms.is_some() && self.dice.chance(60))
                .then(|| self.dice.pick(&["n1", "n2"]).parse().unwrap()),
            stickiness: if may_last { self.stickiness() } else { Stickiness::default() },
            lifecycle: match (&attachment, ttl_ms) {
                (Some(_), _) => Lifecycle::Attached,
                (None, Some(_)) => Lifecycle::Leased,
                (None, None) => Lifecycle::Held,
            },
            interfaces: names.into_iter().map(|name| self.request(name)).collect(),
            automatic_pool: None,
            started: attachment.as_ref().map(|key| self.started(key)),
            attachment,
            options: AllocateOptions { ttl_ms, ..AllocateOptions::default() },
            routing: self.routing(),
        };
        if let ([first, others @ ..], true) = (&mut request.interfaces[..], self.dice.chance(15)) {
            // Several that take from the same, and by value rather than not.
            for other in others {
                other.pools = first.pools.clone();
                other.families = first.families.clone();
                let families = &other.families;
                other.addresses.retain(|one| families.is_empty() || families.contains(&Family::of(*one)));
            }
        }
        if self.dice.chance(30) {
            self.with_own_pools(&mut request);
        }
        request.options.take_over =
            request.endpoint.kind == EndpointKind::Host && request.uid.is_some() && self.dice.chance(30);
        request
    }

    pub(crate) fn both_pools(&mut self) -> PoolPatterns {
        let ipv6 = if self.dice.chance(50) { self.pools(Family::V6) } else { Vec::new() };
        PoolPatterns { ipv4: self.pools(Family::V4), ipv6 }
    }

    /// Names of pools, mostly such as there are.
    fn pools(&mut self, family: Family) -> Vec<NamePattern> {
        let any = self.dice.chance(4);
        let fit = |id: u64| self.state.space(id.into()).is_some_and(|space| any || space.family == family);
        let present: Vec<&str> = self
            .state
            .names(Kind::Pool, None)
            .filter(|(_, id)| fit(*id))
            .map(|(name, _)| name.as_str())
            .collect();
        let count = [1, 1, 1, 2, 2, 3][usize::try_from(self.dice.below(6)).unwrap()];
        (0..count)
            .filter_map(|_| {
                let name = if self.dice.chance(1) { "nowhere" } else { self.dice.pick_any(&present)? };
                let first = &name[..1];
                Some(match self.dice.below(20) {
                    0 => format!("{first}*").parse().unwrap(),
                    1 => format!("[{first}]?*").parse().unwrap(),
                    _ => name.parse().unwrap(),
                })
            })
            .collect()
    }

    fn request(&mut self, name: &str) -> InterfaceRequest {
        let named = self.dice.chance(70);
        let pools = if named { self.both_pools() } else { PoolPatterns::default() };
        let default_pools = if self.dice.chance(10) { self.both_pools() } else { PoolPatterns::default() };
        let mut addresses: Vec<IpAddr> = Vec::new();
        if self.dice.chance(12) && (!pools.ipv4.is_empty() || self.dice.chance(10)) {
            addresses.push(self.range("lan", 1).first_address());
        }
        if self.dice.chance(10) && (!pools.ipv6.is_empty() || self.dice.chance(10)) {
            addresses.push(self.range("six", 1).first_address());
        }
        let families = match self.dice.below(20) {
            0 => vec![Family::V4],
            1 => vec![Family::V6],
            2 => vec![Family::V6, Family::V4],
            _ => Vec::new(),
        };
        addresses.retain(|address| families.is_empty() || families.contains(&Family::of(*address)));
        let subnets = match self.dice.below(16) {
            0 => vec![self.dice.pick(&["lan", "six", "link", "free"]).parse().unwrap()],
            1 => vec!["six".parse().unwrap(), "lan".parse().unwrap()],
            _ => Vec::new(),
        };
        let network_attachment = self.dice.chance(10).then(|| "ns/other".parse().unwrap());
        InterfaceRequest {
            name: name.parse().unwrap(),
            subnets,
            pools,
            default_pools,
            families,
            addresses,
            mac: self
                .dice
                .chance(25)
                .then(|| Text::given(self.dice.pick(&["02:00:00:00:00:01", "02:00:00:00:00:02"]))),
            network_attachment,
            link_addresses: self.link_addresses(),
        }
    }

    /// Addresses of the host's interface: rarely any, and then mostly in the common subnets.
    fn link_addresses(&mut self) -> Vec<IpAddr> {
        match self.dice.below(60) {
            0 => vec![self.range("lan", 1).first_address()],
            1 => vec![self.range("lan", 1).first_address(), self.range("six", 1).first_address()],
            2 => vec!["192.0.2.1".parse().unwrap()],
            _ => Vec::new(),
        }
    }
}
