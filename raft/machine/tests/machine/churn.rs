//! Churn in simulated time: nodes die or are cut off, and probers are blind, slow or lie about silence.
//!
//! No live endpoint is reclaimed, and nothing of dead nodes leaks.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipam_api::access::NodeKey;
use ipam_api::limits::SWEEP_INTERVAL_MS;
use ipam_api::mac::MacAddress;
use ipam_api::name::Name;
use ipam_api::node_report::Inventory;
use ipam_api::resource::Lifecycle;
use ipam_machine::command::{
    AgentReadiness, Heartbeat, Link, PoolSpec, ProbeResult, Probing, Reclaim, ReclaimReason, ReportProbes,
    ReportedBoot, SubnetSpec, Text,
};
use ipam_machine::state::Occupant;
use ipam_machine::{Action, Answer, At, State, Sweep, apply, fixtures};

use crate::access::world::{attachment, node_key, started};
use crate::support::random::Dice;

const NODES: usize = 20;
const PODS: usize = 50;
const SECONDS: u64 = 1_000;
/// Log time of one step: the interval of a prober's rounds.
const STEP_MS: u64 = 10_000;
const GRACE_MS: u64 = 60_000;

/// Behaviour of an agent with its jobs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Prober {
    Honest,
    /// It hears nothing at all.
    Blind,
    /// Its cable is out for a while: it hears the pods of its own node only.
    Unplugged,
    /// It reports the addresses of silent nodes as silent, whatever it hears.
    Liar,
    /// It works every fourth time.
    Slow,
}

/// State of a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    Alive,
    /// Its agent doesn't reach the servers; its pods answer.
    CutOff,
    Dead,
}

struct World {
    state: State,
    at: At,
    lives: Vec<Life>,
    sweeps: Vec<Option<Sweep>>,
    /// Number of allocations that were reclaimed while their pods answered.
    reclaimed_live: usize,
}

fn name_of(node: usize) -> NodeKey {
    node_key(&format!("n{node}"))
}

impl World {
    fn new() -> Self {
        let at = At { log_time_ms: 1, wall_ms: 1, leadership: 0 };
        let (lives, sweeps) = (vec![Life::Alive; NODES], vec![None; NODES]);
        let mut world = Self { state: State::new(), at, lives, sweeps, reclaimed_live: 0 };
        let probing = Probing { conflicts: Some(true), ..Probing::default() };
        let subnet = fixtures::subnet("lan", "10.0.0.0/21");
        let gateway = Some("10.0.0.1".parse().unwrap());
        world.run(Action::PutSubnet(fixtures::put(SubnetSpec { gateway, probing, ..subnet })));
        world.run(Action::PutPool(fixtures::put(PoolSpec { ..fixtures::pool("web", "lan") })));
        (0..NODES).for_each(|node| world.heartbeat(node));
        for node in 0..NODES {
            for pod in 0..PODS {
                let key = attachment(&format!("n{node}"), &format!("c{node}-{pod}"));
                let mut request = fixtures::allocate(&format!("pod/web/p{node}-{pod}"), "web");
                (request.node, request.attachment) = (Some(key.node.clone()), Some(key));
                (request.lifecycle, request.started) = (Lifecycle::Attached, Some(started(1)));
                world.run(Action::Allocate(request));
            }
        }
        world
    }

    fn run(&mut self, action: Action) -> Answer {
        apply(&mut self.state, self.at, &fixtures::command(action)).0.unwrap().answer
    }

    fn heartbeat(&mut self, node: usize) {
        let network = Name::default_name();
        self.run(Action::Heartbeat(Heartbeat {
            node: name_of(node),
            boot: ReportedBoot { id: Text::given("b"), number: 1 },
            readiness: AgentReadiness { ready: true, problem: None },
            agent_version: Text::given("1.0"),
            links: vec![Link { network, cidr: "10.0.0.0/21".parse().unwrap() }],
            inventory: Inventory::default(),
        }));
    }

    /// The node of an allocated address.
    fn node_at(&self, address: IpAddr) -> Option<usize> {
        let network = self.state.networks.first().unwrap().0;
        let Occupant::Allocation(id) = self.state.occupant(network, address)? else { return None };
        let node = self.state.allocations.get(id)?.node.clone()?;
        node.as_str()[1..].parse().ok()
    }

    /// One batch of a node's jobs, as its agent carries it out.
    fn probe(&mut self, node: usize, prober: Prober) {
        let is_due = self.at.log_time_ms % SWEEP_INTERVAL_MS < 2_000;
        let sweep = self.sweeps[node].or(is_due.then_some(Sweep::START));
        let jobs = self.state.probe_jobs(&name_of(node), sweep, 256);
        assert!(jobs.addresses.len() <= 256);
        self.sweeps[node] = jobs.next;
        let silent: BTreeSet<NodeKey> =
            self.state.silent_nodes(30_000).map(|report| report.node.clone()).collect();
        let results = jobs.addresses.into_iter().map(|(_, address)| {
            let on = self.node_at(address);
            let answers = match on {
                Some(on) => self.lives[on] != Life::Dead,
                None => address == "10.0.0.1".parse::<IpAddr>().unwrap(),
            };
            let lies = prober == Prober::Liar && on.is_some_and(|on| silent.contains(&name_of(on)));
            let is_out = prober == Prober::Unplugged && (200_000..600_000).contains(&self.at.log_time_ms);
            let hears = answers && !lies && prober != Prober::Blind && (!is_out || on == Some(node));
            let octets = u32::from_be_bytes(match address {
                IpAddr::V4(address) => address.octets(),
                IpAddr::V6(_) => [0; 4],
            });
            let [a, b, c, d] = octets.to_be_bytes();
            let macs = if hears { vec![MacAddress::new([2, 0, a, b, c, d])] } else { Vec::new() };
            ProbeResult { network: Name::default_name(), address, macs, allocation: None }
        });
        let results: Vec<ProbeResult> = results.collect();
        if self.state.is_news(&name_of(node), &results) {
            self.run(Action::ReportProbes(ReportProbes { node: name_of(node), results }));
        }
    }

    /// The leader's task.
    fn reclaim(&mut self) {
        let due = self.state.suspects(GRACE_MS, None).filter(|suspect| suspect.is_due);
        let due: Vec<_> = due.map(|suspect| (suspect.report.node.clone(), suspect.allocation)).collect();
        if !due.is_empty() {
            self.suspects_by_pages();
        }
        for (node, id) in due {
            let number: usize = node.name.as_str()[1..].parse().unwrap();
            self.reclaimed_live += usize::from(self.lives[number] != Life::Dead);
            let reason = ReclaimReason::NodeSilent { grace_ms: GRACE_MS };
            self.run(Action::Reclaim(Reclaim { node, reason, allocations: vec![id] }));
        }
    }

    /// Pages that continue after a place show all suspects, each once.
    fn suspects_by_pages(&self) {
        let all: Vec<_> = self.state.suspects(GRACE_MS, None).map(|suspect| suspect.place).collect();
        assert!(all.is_sorted(), "{all:?}");
        let (mut pages, mut after) = (Vec::new(), None);
        loop {
            let page: Vec<_> =
                self.state.suspects(GRACE_MS, after).take(7).map(|suspect| suspect.place).collect();
            let Some(last) = page.last() else { break };
            after = Some(*last);
            pages.extend(page);
        }
        assert_eq!(pages, all);
    }

    fn leaked(&self) -> usize {
        let on_dead = |node: &Option<ipam_api::name::ObjectName>| {
            let number: Option<usize> = node.as_ref().and_then(|node| node.as_str()[1..].parse().ok());
            number.is_some_and(|number| self.lives[number] == Life::Dead)
        };
        self.state.allocations.iter().filter(|(_, row)| on_dead(&row.node)).count()
    }
}

/// Runs 1,000 endpoints for 1,000 seconds. Nodes 0 to 4 die, 5 to 9 are cut off, and the others judge them.
fn churn(seed: u64, prober: impl Fn(usize) -> Prober) -> World {
    let mut dice = Dice(seed);
    let mut world = World::new();
    let ends: Vec<u64> = (0..10).map(|_| 250_000 + dice.below(100) * 1_000).collect();
    let back: Vec<u64> = (0..10).map(|node| ends[node] + 100_000 + dice.below(400) * 1_000).collect();
    for step in 1..=(SECONDS * 1_000 / STEP_MS) {
        let now = step * STEP_MS;
        world.at = At { log_time_ms: now, wall_ms: now, leadership: 0 };
        for node in 0..10 {
            world.lives[node] = match node {
                _ if now < ends[node] => Life::Alive,
                0..=4 => Life::Dead,
                _ if now < back[node] => Life::CutOff,
                _ => Life::Alive,
            };
        }
        let alive: Vec<usize> = (0..NODES).filter(|node| world.lives[*node] == Life::Alive).collect();
        for node in alive {
            world.heartbeat(node);
            let works = prober(node) != Prober::Slow || (step + node as u64).is_multiple_of(4);
            if works && world.state.has_probes(&name_of(node)) {
                world.probe(node, prober(node));
            }
        }
        world.reclaim();
    }
    world
}

#[test]
fn honest_probers_free_all_of_dead_nodes_and_nothing_that_lives() {
    let world = churn(1, |_| Prober::Honest);
    assert_eq!((world.reclaimed_live, world.leaked()), (0, 0));
    assert_eq!(world.state.allocations.len(), (NODES - 5) * PODS);
}

#[test]
fn blind_slow_and_unplugged_probers_free_nothing_that_lives() {
    let prober = |node: usize| match node % 4 {
        0 => Prober::Blind,
        1 => Prober::Slow,
        2 => Prober::Unplugged,
        _ => Prober::Honest,
    };
    let world = churn(2, prober);
    assert_eq!((world.reclaimed_live, world.leaked()), (0, 0));
}

/// Another witness contradicts a liar; so addresses of dead nodes are free, and live ones stay.
#[test]
fn one_liar_among_witnesses_frees_nothing_that_lives() {
    let world = churn(3, |node| if node == 15 { Prober::Liar } else { Prober::Honest });
    assert_eq!((world.reclaimed_live, world.leaked()), (0, 0));
}

/// Between two sweeps a prober gets only addresses that it has not heard.
#[test]
fn between_sweeps_only_new_addresses_are_probed() {
    let mut world = World::new();
    let prober = (0..NODES).find(|node| world.state.has_probes(&name_of(*node))).unwrap();
    let jobs = |world: &World, sweep: Option<Sweep>| -> Vec<IpAddr> {
        let jobs = world.state.probe_jobs(&name_of(prober), sweep, 2 * NODES * PODS);
        assert_eq!(jobs.next, None);
        let all = jobs.addresses.into_iter().map(|(_, address)| address);
        all.filter(|address| world.node_at(*address).is_some()).collect()
    };
    let allocated = |world: &World| jobs(world, None);
    assert_eq!(allocated(&world).len(), (NODES - 1) * PODS, "all of other nodes");
    loop {
        world.probe(prober, Prober::Honest);
        if world.sweeps[prober].is_none() {
            break;
        }
    }
    world.at.log_time_ms = 10_000;
    (0..NODES).for_each(|node| world.heartbeat(node));
    assert_eq!(allocated(&world), [] as [IpAddr; 0]);
    // One on another node, and one of its own, which it can't judge.
    let mut new = Vec::new();
    for node in [(prober + 1) % NODES, prober] {
        let key = attachment(&format!("n{node}"), "new");
        let mut request = fixtures::allocate(&format!("pod/web/new-{node}"), "web");
        (request.node, request.attachment) = (Some(key.node.clone()), Some(key));
        (request.lifecycle, request.started) = (Lifecycle::Attached, Some(started(1)));
        let Answer::Allocated { interfaces, .. } = world.run(Action::Allocate(request)) else {
            panic!("it is allocated")
        };
        new.push(interfaces[0].addresses[0].address.addr());
    }
    assert_eq!(allocated(&world), new[..1]);
    assert_eq!(jobs(&world, Some(Sweep::START)).len(), NODES * PODS + 2, "a sweep begins");
}

/// Only what may change the state is worth a log entry.
#[test]
fn results_that_change_nothing_are_no_news() {
    let mut world = World::new();
    let (probers, others): (Vec<NodeKey>, Vec<NodeKey>) =
        (0..NODES).map(name_of).partition(|node| world.state.has_probes(node));
    let result = |address: &str, answers: bool| ProbeResult {
        network: Name::default_name(),
        address: address.parse().unwrap(),
        macs: if answers { vec![MacAddress::new([2, 0, 0, 0, 0, 9])] } else { Vec::new() },
        allocation: None,
    };
    let report = |world: &mut World, node: &NodeKey, result: ProbeResult| {
        let is_news = world.state.is_news(node, std::slice::from_ref(&result));
        let before = world.state.digest();
        let answer =
            world.run(Action::ReportProbes(ReportProbes { node: node.clone(), results: vec![result] }));
        let recorded = matches!(answer, Answer::Probed { recorded: 1, .. });
        assert_eq!(world.state.digest() != before, recorded);
        (is_news, recorded)
    };
    let (silent, answers) = (false, true);
    // Of an unknown network, of no link, of no pool.
    let nowhere = ProbeResult { network: "nowhere".parse().unwrap(), ..result("10.0.7.9", answers) };
    for one in [nowhere, result("10.1.7.9", answers), result("10.0.0.1", answers)] {
        assert_eq!(report(&mut world, &probers[0], one), (false, false));
    }
    // A check, once, of a prober.
    assert_eq!(report(&mut world, &others[0], result("10.0.7.8", silent)), (false, false));
    assert_eq!(report(&mut world, &probers[0], result("10.0.7.8", silent)), (true, true));
    assert_eq!(report(&mut world, &probers[1], result("10.0.7.8", silent)), (false, false));
    // A quarantine, and its confirmation.
    assert_eq!(report(&mut world, &others[0], result("10.0.7.9", answers)), (false, false));
    assert_eq!(report(&mut world, &probers[0], result("10.0.7.9", answers)), (true, true));
    assert_eq!(report(&mut world, &probers[0], result("10.0.7.9", answers)), (false, false));
    assert_eq!(report(&mut world, &others[0], result("10.0.7.9", answers)), (false, false));
    assert_eq!(report(&mut world, &others[0], result("10.0.7.9", silent)), (false, false));
    // Nodes that are no probers can't keep it up when it is due.
    world.at.log_time_ms = 70_000;
    (0..NODES).for_each(|node| world.heartbeat(node));
    assert_eq!(report(&mut world, &others[0], result("10.0.7.9", answers)), (false, false));
    assert_eq!(report(&mut world, &others[0], result("10.0.7.9", silent)), (false, false));
    assert_eq!(report(&mut world, &probers[1], result("10.0.7.9", answers)), (true, true));
}

/// Jobs cover every allocated address once in a sweep, and those of a prober that fails move to another one.
#[test]
fn a_sweep_covers_each_address_once_and_moves_from_a_silent_prober() {
    let mut world = World::new();
    let probers = |world: &World| -> Vec<usize> {
        (0..NODES).filter(|node| world.state.has_probes(&name_of(*node))).collect()
    };
    let first = probers(&world);
    assert_eq!(first.len(), 2, "two probers of the subnet");
    let (mut sweep, mut swept) = (Some(Sweep::START), Vec::new());
    loop {
        let jobs = world.state.probe_jobs(&name_of(first[0]), sweep, 100);
        assert!(jobs.addresses.len() <= 100);
        swept.extend(
            jobs.addresses.into_iter().map(|(_, one)| one).filter(|one| world.node_at(*one).is_some()),
        );
        sweep = jobs.next;
        if sweep.is_none() {
            break;
        }
    }
    let once: BTreeSet<IpAddr> = swept.iter().copied().collect();
    assert_eq!((swept.len(), once.len()), (NODES * PODS, NODES * PODS));
    let limits = [0, 1, 2, 3, 5, 8];
    for limit in limits {
        assert!(world.state.probe_jobs(&name_of(first[0]), None, limit).addresses.len() <= limit, "{limit}");
    }
    // One of them falls silent.
    world.at.log_time_ms = 40_000;
    (0..NODES).filter(|node| *node != first[0]).for_each(|node| world.heartbeat(node));
    let second = probers(&world);
    assert_eq!(second.len(), 2);
    assert!(!second.contains(&first[0]) && second.contains(&first[1]), "{first:?} {second:?}");
    // Another term has other probers, sooner or later.
    let mut all = BTreeSet::new();
    for term in 1..10 {
        world.at.log_time_ms = term * 600_000 + 1;
        (0..NODES).for_each(|node| world.heartbeat(node));
        all.extend(probers(&world));
    }
    assert!(all.len() > 4, "{all:?}");
}
