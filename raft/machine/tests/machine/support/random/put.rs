//! At random: what administrators want.

use std::net::IpAddr;

use ipam_api::address::number;
use ipam_api::name::Name;
use ipam_api::resource::Route;
use ipam_api::{Code, Family};
use ipam_machine::Action;
use ipam_machine::command::{
    Dns, Expect, HostPolicyInterface, HostPolicySpec, MaxUnavailable, NetworkSpec, PoolSelectors, Put,
    ReservationSpec, SubnetSpec, Text,
};

use ipnet::IpNet;

use super::Draw;

impl Draw<'_> {
    pub(super) fn put_network(&mut self, name: &str, expect: Expect) -> Action {
        let spec = NetworkSpec {
            name: Name::new(name).unwrap(),
            probing: self.probing(),
            metadata: self.metadata(),
        };
        Action::PutNetwork(Put { spec, expect })
    }

    pub(super) fn put_subnet(&mut self, (name, network, cidr): (&str, &str, &str), expect: Expect) -> Action {
        let name = Name::new(name).unwrap();
        let network = if self.dice.chance(4) { "blue" } else { network };
        let cidr: IpNet = if self.dice.chance(4) { "10.0.0.0/30" } else { cidr }.parse().unwrap();
        let size = number(cidr.broadcast()) - number(cidr.network());
        let inside = number(cidr.network()) + u128::from(self.dice.below(1 + u64::try_from(size).unwrap()));
        let mut spec = SubnetSpec {
            name,
            network: Name::new(network).unwrap(),
            cidr,
            gateway: self.dice.chance(60).then(|| Family::of(cidr.addr()).address(inside)),
            vlan: None,
            mtu: self.dice.chance(30).then_some(9000),
            routes: self.routes(Family::of(cidr.addr()).address(inside)),
            dns: Dns::default(),
            automatic: self.automatic_rules(cidr),
            probing: self.probing(),
            metadata: self.metadata(),
        };
        let put = |spec: &SubnetSpec| Action::PutSubnet(Put { spec: spec.clone(), expect });
        if let Err(refusal) = put(&spec).check() {
            assert_eq!(refusal.code(), Code::GatewayInRange);
            spec.gateway = None;
        }
        put(&spec)
    }

    /// Rarely any, all of them through one address.
    pub(super) fn routes(&mut self, gateway: IpAddr) -> Vec<Route> {
        let destinations = match Family::of(gateway) {
            Family::V4 => ["10.9.0.0/16", "10.8.0.0/16", "10.9.1.0/24"],
            Family::V6 => ["2001:db8:9::/48", "2001:db8:8::/48", "fd00::/8"],
        };
        let mut routes = Vec::new();
        for destination in destinations {
            let route = Route { destination: destination.parse().unwrap(), gateway };
            routes.extend(self.dice.chance(15).then_some(route));
        }
        routes
    }

    /// Mostly no selectors.
    pub(super) fn selectors(&mut self) -> PoolSelectors {
        let mut selectors = PoolSelectors::default();
        if self.dice.chance(8) {
            selectors.realms = vec![self.dice.pick(&["default", "prod"]).parse().unwrap()];
        }
        if self.dice.chance(10) {
            selectors.node_names = vec![self.dice.pick(&["n1", "n2"]).parse().unwrap()];
        }
        if self.dice.chance(10) {
            selectors.namespaces = vec![self.dice.pick(&["web", "default"]).parse().unwrap()];
        }
        if self.dice.chance(10) {
            selectors.node_selector =
                self.dice.pick(&["zone=a", "zone in (a,b)", "zone!=a"]).parse().unwrap();
        }
        if self.dice.chance(10) {
            selectors.namespace_selector = self.dice.pick(&["team=x", "!team", "team!=x"]).parse().unwrap();
        }
        if self.dice.chance(12) {
            let expressions = ["app=a", "app in (a,b)", "app!=a", "!app", "app", "app=b,app!=c"];
            selectors.endpoint_selector = self.dice.pick(&expressions).parse().unwrap();
        }
        if self.dice.chance(6) {
            selectors.network_attachments = vec![self.dice.pick(&["net", "ns/other"]).parse().unwrap()];
        }
        selectors
    }

    pub(super) fn put_host_policy(&mut self, name: &str, expect: Expect) -> Action {
        let pools = ["a", "b", "missing"];
        let interfaces = (0..self.dice.below(3)).map(|index| HostPolicyInterface {
            name: format!("eth{index}").parse().unwrap(),
            ipv4_pools: vec![Name::new(self.dice.pick(&pools)).unwrap()],
            ipv6_pools: Vec::new(),
            clean_gateway: self.dice.chance(30),
        });
        let spec = HostPolicySpec {
            name: Name::new(name).unwrap(),
            interfaces: interfaces.collect(),
            realm: Name::new(if self.dice.chance(15) { "prod" } else { "default" }).unwrap(),
            node_selector: self.dice.pick(&["", "zone=a", "!zone"]).parse().unwrap(),
            capture: [(Text::given("a"), Text::given("ippool.a.allocate"))].into(),
            desired_state: Text::given(self.dice.pick(&["{}", "{\"interfaces\":[]}"])),
            max_unavailable: MaxUnavailable::Count(1),
            metadata: self.metadata(),
        };
        Action::PutHostPolicy(Put { spec, expect })
    }

    pub(super) fn put_reservation(&mut self, name: &str, expect: Expect) -> Action {
        let network = if name == "r1" || self.dice.chance(10) { "default" } else { "blue" };
        let subnets = ["lan", "lan", "six", "link"];
        let addresses = (0..=self.dice.below(2)).map(|_| self.dice.pick(&subnets)).collect::<Vec<_>>();
        let spec = ReservationSpec {
            name: Name::new(name).unwrap(),
            network: Name::new(network).unwrap(),
            addresses: addresses.into_iter().map(|subnet| self.range(subnet, 6)).collect(),
            endpoint: self.dice.chance(40).then(|| self.endpoint()),
            metadata: self.metadata(),
        };
        Action::PutReservation(Put { spec, expect })
    }
}
