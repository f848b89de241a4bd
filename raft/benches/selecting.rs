//! What choosing among many pools costs: `cargo bench -p ipam-raft --bench selecting`.
//!
//! 10,000 default pools, each for some node, namespace, label or attachment; requests that name no pool and must
//! consider all of them, and requests that name one. A plain program: it prints a table.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a measurement that can't be made has failed"
)]

use std::hint::black_box;
use std::time::Instant;

use ipam_api::access::Role;
use ipam_api::name::Name;
use ipam_api::resource::{Lifecycle, Strategy};
use ipam_raft::machine::command::{
    Allocate, Dns, Expect, InterfaceWish, Origin, PoolIntention, Put, Remarks, SubnetIntention, Takers, Via,
};
use ipam_raft::machine::{Action, At, Command, Grant, State, Terms, apply};

const POOLS: u32 = 10_000;
const NODES: u32 = 1000;
const NAMESPACES: u32 = 1000;
const ROUNDS: u32 = 2000;

fn main() {
    println!("{:<64} {:>10} {:>10}", "an allocation and its release", "median", "p99");
    let none = |_| Takers::default();
    row("one pool, named", &mut with_pools(1, none), Some("pool-0"));
    row("one pool, not named", &mut with_pools(1, none), None);
    row("10,000 pools, one named", &mut with_pools(POOLS, divided), Some("pool-0"));
    row("10,000 pools, 3 that fit, not named", &mut with_pools(POOLS, divided), None);
    row(
        "10,000 pools that ask for a label whatever its value, not named",
        &mut with_pools(POOLS, alike),
        None,
    );
}

/// A quarter each by node, namespace, label and attachment.
fn divided(number: u32) -> Takers {
    let mut takers = Takers::default();
    match number % 4 {
        0 => takers.node_names = vec![format!("node-{}", number / 4 % NODES).parse().unwrap()],
        1 => takers.namespaces = vec![format!("space-{}", number / 4 % NAMESPACES).parse().unwrap()],
        2 => takers.endpoint_selector = format!("app=app-{},!legacy", number / 4).parse().unwrap(),
        _ => takers.network_attachments = vec![format!("net-{}", number / 4).parse().unwrap()],
    }
    takers
}

/// What no index helps with.
fn alike(_: u32) -> Takers {
    Takers { endpoint_selector: "app,!legacy".parse().unwrap(), ..Takers::default() }
}

fn with_pools(count: u32, takers: impl Fn(u32) -> Takers) -> State {
    let mut state = State::new();
    let subnet = SubnetIntention {
        name: name("lan"),
        network: Name::default_name(),
        cidr: "10.0.0.0/8".parse().unwrap(),
        gateway: None,
        vlan: None,
        routes: Vec::new(),
        dns: Dns::default(),
        remarks: Remarks::default(),
    };
    run(&mut state, Action::PutSubnet(Put { intention: subnet, expect: Expect::Anything }));
    for number in 0..count {
        let intention = PoolIntention {
            name: name(&format!("pool-{number}")),
            subnet: name("lan"),
            network: None,
            ranges: vec![format!("10.{}.{}.1-10.{0}.{1}.250", number >> 8, number & 255).parse().unwrap()],
            exclude: Vec::new(),
            strategy: Strategy::Next,
            cooling_ms: 0,
            strict_cooling: false,
            allow_edges: false,
            default: true,
            takers: takers(number),
            disabled: false,
            terminating: false,
            remarks: Remarks::default(),
        };
        run(&mut state, Action::PutPool(Put { intention, expect: Expect::Anything }));
    }
    state
}

fn row(what: &str, state: &mut State, pool: Option<&str>) {
    let mut took = Vec::new();
    for round in 0..ROUNDS {
        let endpoint = format!("pod/space-0/web-{round}").parse().unwrap();
        let interface = InterfaceWish {
            name: "eth0".parse().unwrap(),
            ipv4_pools: pool.iter().map(|pool| pool.parse().unwrap()).collect(),
            ipv6_pools: Vec::new(),
            families: Vec::new(),
            addresses: Vec::new(),
            mac: None,
            network_attachment: None,
        };
        let labels = [("app", "app-0"), ("team", "web"), ("zone", "a"), ("tier", "front")];
        let wish = Action::Allocate(Allocate {
            endpoint,
            uid: None,
            labels: labels.map(|(key, value)| (key.into(), value.into())).into(),
            node: Some("node-0".parse().unwrap()),
            attachment: None,
            lifecycle: Lifecycle::Held,
            interfaces: vec![interface],
            started: None,
        });
        let Action::Allocate(Allocate { endpoint: key, .. }) = &wish else { continue };
        let release = Action::ReleaseEndpoint { key: key.clone() };
        let begun = Instant::now();
        run(state, wish);
        run(state, release);
        took.push(begun.elapsed().as_nanos());
        state.take_touched();
    }
    took.sort_unstable();
    let at = |percent: usize| took.get((took.len() - 1) * percent / 100).copied().unwrap();
    println!("{what:<64} {:>7} ns {:>7} ns", at(50), at(99));
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn run(state: &mut State, action: Action) {
    let at = At { log_time_ms: 1000, wall_ms: 1_700_000_000_000, term: 1 };
    let origin = Origin {
        principal: "bench".into(),
        via: Via::Cni,
        request_id: "request".into(),
        comment: None,
        not_after_ms: None,
    };
    let command = Command { origin, terms: Terms::of(Grant::of(Role::Admin)), action };
    black_box(apply(state, at, black_box(&command))).0.unwrap();
}
