//! Costs of selection among many pools: `cargo bench -p ipam-machine --bench selecting`.
//!
//! 10,000 default pools, each for some node, namespace, label or attachment, with 1,000 nodes and 1,000
//! namespaces that have labels; requests that name no pool and must consider all of them, and requests that
//! name one. A plain program: it prints a table.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a measurement that can't be made has failed"
)]

mod support;

use ipam_machine::command::Text;
use std::time::Instant;

use ipam_machine::command::{Allocate, InterfaceRequest, PoolPatterns, PoolSelectors, PoolSpec};
use ipam_machine::{Action, State, fixtures};

use support::{put_namespace, put_node, put_pool, put_subnet, run};

const POOLS: u32 = 10_000;
const NODES: u32 = 1000;
const NAMESPACES: u32 = 1000;
const ROUNDS: u32 = 2000;

fn main() {
    println!("{:<64} {:>10} {:>10}", "an allocation and its release", "median", "p99");
    let none = |_| PoolSelectors::default();
    row("one pool, named", &mut with_pools(1, none), Some("pool-0"));
    row("one pool, not named", &mut with_pools(1, none), None);
    row("10,000 pools, one named", &mut with_pools(POOLS, divided), Some("pool-0"));
    row("10,000 pools, one for each thing asked for, not named", &mut with_pools(POOLS, divided), None);
    row("10,000 pools, by labels of nodes alone, not named", &mut with_pools(POOLS, by_racks), None);
    row(
        "10,000 pools that ask for a label whatever its value, not named",
        &mut with_pools(POOLS, alike),
        None,
    );
}

/// Selectors in six equal parts. By node, node labels, namespace, namespace labels, endpoint labels,
/// attachment.
fn divided(number: u32) -> PoolSelectors {
    let mut selectors = PoolSelectors::default();
    let part = number / 6;
    match number % 6 {
        0 => selectors.node_names = vec![format!("node-{}", part % NODES).parse().unwrap()],
        1 => selectors.node_selector = format!("rack=rack-{},!legacy", part % NODES).parse().unwrap(),
        2 => selectors.namespaces = vec![format!("space-{}", part % NAMESPACES).parse().unwrap()],
        3 => selectors.namespace_selector = format!("team in (team-{})", part % NAMESPACES).parse().unwrap(),
        4 => selectors.endpoint_selector = format!("app=app-{part},!legacy").parse().unwrap(),
        _ => selectors.network_attachments = vec![format!("net-{part}").parse().unwrap()],
    }
    selectors
}

/// Ten for each rack.
fn by_racks(number: u32) -> PoolSelectors {
    let node_selector = format!("rack=rack-{}", number % NODES).parse().unwrap();
    PoolSelectors { node_selector, ..PoolSelectors::default() }
}

/// Selectors that no index supports.
fn alike(_: u32) -> PoolSelectors {
    PoolSelectors { endpoint_selector: "app,!legacy".parse().unwrap(), ..PoolSelectors::default() }
}

fn with_pools(count: u32, selectors: impl Fn(u32) -> PoolSelectors) -> State {
    let mut state = State::new();
    run(&mut state, put_subnet("lan", "10.0.0.0/8"));
    for number in 0..NODES {
        run(&mut state, put_node(&format!("node-{number}"), ("rack", &format!("rack-{number}"))));
    }
    for number in 0..NAMESPACES {
        run(&mut state, put_namespace(&format!("space-{number}"), ("team", &format!("team-{number}"))));
    }
    for number in 0..count {
        let range = format!("10.{}.{}.1-10.{0}.{1}.250", number >> 8, number & 255);
        let pool = PoolSpec {
            ranges: vec![range.parse().unwrap()],
            default: true,
            selectors: selectors(number),
            ..fixtures::pool(&format!("pool-{number}"), "lan")
        };
        run(&mut state, put_pool(pool));
    }
    state
}

fn row(what: &str, state: &mut State, pool: Option<&str>) {
    let mut took = Vec::new();
    for round in 0..ROUNDS {
        let pools =
            PoolPatterns { ipv4: pool.iter().map(|pool| pool.parse().unwrap()).collect(), ipv6: Vec::new() };
        let interface = InterfaceRequest { pools, ..fixtures::interface("eth0") };
        let labels = [("app", "app-0"), ("team", "web"), ("zone", "a"), ("tier", "front")];
        let request = Action::Allocate(Allocate {
            labels: labels.map(|(key, value)| (Text::given(key), Text::given(value))).into(),
            node: Some("node-0".parse().unwrap()),
            ..fixtures::allocate_for(&format!("pod/space-0/web-{round}"), vec![interface])
        });
        let Action::Allocate(Allocate { endpoint: key, .. }) = &request else { continue };
        let release = Action::ReleaseEndpoint { key: key.clone() };
        let begun = Instant::now();
        run(state, request);
        run(state, release);
        took.push(begun.elapsed().as_nanos());
        state.take_touched();
    }
    took.sort_unstable();
    let at = |percent: usize| took.get((took.len() - 1) * percent / 100).copied().unwrap();
    println!("{what:<64} {:>7} ns {:>7} ns", at(50), at(99));
}
