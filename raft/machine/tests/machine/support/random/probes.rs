//! Random probes: settings, links, results, and the end of quarantines and of nodes.

use std::net::IpAddr;

use ipam_api::access::NodeKey;
use ipam_api::address::AddressRange;
use ipam_api::mac::MacAddress;
use ipam_api::name::Name;
use ipam_machine::command::{
    EndQuarantine, Expect, Link, PoolPatterns, PoolSpec, ProbeResult, Probing, Reclaim, ReclaimReason,
    ReportProbes, ReportedBoot, SplitPool, Text,
};
use ipam_machine::model::Allocation;
use ipam_machine::{Action, fixtures};

use super::Draw;

impl Draw<'_> {
    /// Mostly nothing, else mostly that addresses are probed.
    pub(super) fn probing(&mut self) -> Probing {
        if self.dice.chance(40) {
            return Probing::default();
        }
        Probing {
            conflicts: self.dice.chance(80).then(|| self.dice.chance(85)),
            gateway: self.dice.chance(20).then(|| self.dice.chance(50)),
            valid_ms: self.dice.chance(50).then(|| 10_000 + self.dice.below(3) * 20_000),
        }
    }

    /// In order.
    pub(super) fn links(&mut self) -> Vec<Link> {
        let mut links = Vec::new();
        for (network, cidr) in
            [("blue", "10.0.0.0/16"), ("default", "10.0.0.0/8"), ("default", "2001:db8::/64")]
        {
            let link = Link { network: network.parse().unwrap(), cidr: cidr.parse().unwrap() };
            links.extend(self.dice.chance(80).then_some(link));
        }
        links
    }

    /// Log time of a course in which nodes fall silent.
    pub(crate) fn log_time_of_probes(&mut self, now: u64) -> u64 {
        match self.dice.below(100) {
            25..=49 if self.is_watching() => now + 10_000,
            0..=24 => now + 10_000 + self.dice.below(2_000),
            25 | 26 => now + 35_000,
            27 => now + 130_000,
            _ => now + self.dice.below(20),
        }
    }

    /// Commands of probes, and those that make addresses to be probed.
    pub(crate) fn probes_only(&mut self) -> Action {
        match (self.index, self.dice.below(100)) {
            (0..super::FOUNDING, _) => self.founding(),
            (_, roll) if self.is_watching() && roll < 80 => self.watch(roll),
            (_, 0..=19) => self.single(true),
            (_, 20..=34) => Action::from(self.allocate()),
            (_, 35..=54) => self.heartbeat_of_probers(),
            (_, 55..=59) => self.quarantined_again().unwrap_or(Action::Expire),
            _ => self.probe_action(),
        }
    }

    /// True if a node has found an address of a silent node silent.
    fn is_watching(&self) -> bool {
        self.state.neighbors.iter().any(|(_, row)| !row.silence.is_empty())
    }

    /// Further rounds of a witness, and the reclaim.
    fn watch(&mut self, roll: u64) -> Action {
        let node = NodeKey { realm: Name::default_name(), name: "n2".parse().unwrap() };
        match roll {
            0..=39 => Action::ReportProbes(ReportProbes { node, results: self.sweep() }),
            40..=59 => {
                let mut action = self.heartbeat();
                if let Action::Heartbeat(heartbeat) = &mut action {
                    (heartbeat.node, heartbeat.boot) =
                        (node, ReportedBoot { id: Text::given("b1"), number: 1 });
                }
                action
            }
            _ => self.reclaim(),
        }
    }

    /// A heartbeat, mostly of a node that then judges others.
    fn heartbeat_of_probers(&mut self) -> Action {
        let mut action = self.heartbeat();
        if let (Action::Heartbeat(heartbeat), true) = (&mut action, self.dice.chance(75)) {
            heartbeat.node = NodeKey { realm: Name::default_name(), name: "n2".parse().unwrap() };
            heartbeat.boot = ReportedBoot { id: Text::given("b1"), number: 1 };
        }
        action
    }

    /// A request for a quarantined address: it is adopted, or its pool loses it.
    fn quarantined_again(&mut self) -> Option<Action> {
        let all: Vec<_> = self.state.quarantines.iter().map(|(_, row)| row.clone()).collect();
        let row = all.get(self.at(all.len()))?;
        let spec = self.state.pools.get(row.pool)?.spec.clone();
        let pool = spec.name.clone();
        if self.dice.chance(30) {
            let exclude = vec![AddressRange::single(row.address)];
            return Some(Action::PutPool(fixtures::put(PoolSpec { exclude, ..spec })));
        }
        if self.dice.chance(40) {
            return Some(Action::SplitPool(SplitPool {
                name: pool,
                into: self.dice.pick(&["s", "t"]).parse().unwrap(),
                ranges: vec![AddressRange::single(row.address)],
                expect: Expect::Anything,
            }));
        }
        let mut request = fixtures::allocate("host/h0", pool.as_str());
        let interface = &mut request.interfaces[0];
        if row.address.is_ipv6() {
            interface.pools = PoolPatterns { ipv4: Vec::new(), ipv6: vec![(&pool).into()] };
        }
        interface.addresses = vec![row.address];
        interface.name = self.dice.pick(&["eth0", "eth1", "eth2"]).parse().unwrap();
        request.options.adopt = true;
        Some(Action::from(request))
    }

    /// A silent node, if there is one.
    fn silent_node(&mut self) -> NodeKey {
        let silent: Vec<NodeKey> =
            self.state.silent_nodes(30_000).map(|report| report.node.clone()).collect();
        match silent.get(self.at(silent.len())) {
            Some(node) if self.dice.chance(90) => node.clone(),
            _ => self.node(),
        }
    }

    pub(super) fn probe_action(&mut self) -> Action {
        let quarantined: Vec<(Name, IpAddr)> =
            self.state.quarantines.iter().map(|(_, row)| (self.network(row.network), row.address)).collect();
        match self.dice.below(20) {
            0 => match quarantined.get(self.at(quarantined.len())) {
                Some((network, address)) => {
                    Action::EndQuarantine(EndQuarantine { network: network.clone(), address: *address })
                }
                None => Action::EndQuarantine(EndQuarantine {
                    network: Name::default_name(),
                    address: self.range("lan", 1).first_address(),
                }),
            },
            1..=5 => self.reclaim(),
            _ => self.results(),
        }
    }

    fn at(&mut self, length: usize) -> usize {
        usize::try_from(self.dice.below(length.max(1) as u64)).unwrap()
    }

    fn network(&self, network: ipam_machine::id::NetworkId) -> Name {
        self.state.networks.get(network).unwrap().spec.name.clone()
    }

    fn reclaim(&mut self) -> Action {
        let node = self.silent_node();
        let reason = match self.dice.below(4) {
            0 => ReclaimReason::NodeGone,
            _ => ReclaimReason::NodeSilent { grace_ms: 30_000 },
        };
        let on_node = self.state.attachments_on(&node, None);
        let mut allocations: Vec<_> = on_node.flat_map(|(_, row)| row.allocations.to_vec()).collect();
        if let (true, [_, ..]) = (self.dice.chance(15), self.issued) {
            allocations.push(self.issued[self.at(self.issued.len())].into());
        }
        Action::Reclaim(Reclaim { node, reason, allocations })
    }

    /// Results of one node: allocated addresses in one batch, or others one by one.
    fn results(&mut self) -> Action {
        let n2 = NodeKey { realm: Name::default_name(), name: "n2".parse().unwrap() };
        let node = if self.dice.chance(50) { n2 } else { self.node() };
        let mut results = Vec::new();
        match self.dice.below(10) {
            0..=3 => results = self.sweep(),
            4..=6 => results.extend(self.result_of_add(&node)),
            _ => {
                for _ in 0..=self.dice.below(4) {
                    results.push(self.result_of_any());
                }
            }
        }
        Action::ReportProbes(ReportProbes { node, results })
    }

    /// Results of a sweep, in which the addresses of silent nodes are silent.
    fn sweep(&mut self) -> Vec<ProbeResult> {
        let mut results = Vec::new();
        let silent: Vec<_> = self.state.silent_nodes(30_000).map(|report| report.node.name.clone()).collect();
        for (_, row) in self.state.subnets.iter() {
            let Some(address) = row.spec.gateway else { continue };
            let (network, macs) = (row.spec.network.clone(), self.macs(false));
            results.push(ProbeResult { network, address, macs, allocation: None });
        }
        let rows: Vec<Allocation> = self.state.allocations.iter().map(|(_, row)| row.clone()).collect();
        for row in rows {
            let is_silent =
                row.node.as_ref().is_some_and(|node| silent.contains(node)) && self.dice.chance(97);
            let macs = if is_silent { Vec::new() } else { self.macs(row.mac.is_some()) };
            results.push(ProbeResult {
                network: self.network(row.network),
                address: row.address,
                macs,
                allocation: None,
            });
        }
        results
    }

    fn macs(&mut self, is_known: bool) -> Vec<MacAddress> {
        let mac = |last| MacAddress::new([2, 0, 0, 0, 0, last]);
        match self.dice.below(20) {
            0..=3 => vec![mac(3)],
            4 => vec![mac(1), mac(2)],
            _ if is_known => vec![mac(1)],
            _ => vec![mac(4)],
        }
    }

    fn result_of_add(&mut self, node: &NodeKey) -> Option<ProbeResult> {
        let on_node = self.state.attachments_on(node, None);
        let mut ids: Vec<_> = on_node.flat_map(|(_, row)| row.allocations.to_vec()).collect();
        if self.dice.chance(10) {
            ids = self.state.allocations.iter().map(|(id, _)| id).collect();
        }
        let id = *ids.get(self.at(ids.len()))?;
        let row = self.state.allocations.get(id)?;
        let (network, address) = (self.network(row.network), row.address);
        let macs = if self.dice.chance(30) { Vec::new() } else { self.macs(false) };
        Some(ProbeResult { network, address, macs, allocation: Some(id) })
    }

    /// An address of a subnet, or a quarantined one, or the gateway.
    fn result_of_any(&mut self) -> ProbeResult {
        let quarantined: Vec<_> = self.state.quarantines.iter().map(|(_, row)| row.clone()).collect();
        let (network, address) = match quarantined.get(self.at(quarantined.len())) {
            Some(row) if self.dice.chance(60) => (self.network(row.network), row.address),
            _ => {
                let subnet = self.dice.pick(&["lan", "lan", "six", "azure", "free"]);
                let network = if subnet == "azure" { "blue" } else { "default" };
                (network.parse().unwrap(), self.range(subnet, 1).first_address())
            }
        };
        let macs = if self.dice.chance(65) { Vec::new() } else { self.macs(false) };
        ProbeResult { network, address, macs, allocation: None }
    }
}
