//! Costs of a command that exhausts its work budget: `cargo bench -p ipam-machine --bench work`.
//!
//! The largest requests that are meant to be possible, and the most expensive ones that a node may send, each
//! with its outcome and the time of `apply` at the median. The bound of five milliseconds is about selection;
//! what a bulk writes comes on top. A plain program: it prints a table.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a measurement that can't be made has failed"
)]

mod support;

use std::hint::black_box;
use std::net::IpAddr;
use std::time::Instant;

use ipam_machine::command::{Allocate, InterfaceRequest, PoolPatterns, PoolSpec, Text, Transaction};
use ipam_machine::{Action, At, State, apply, fixtures};

use support::{command, put_pool, put_subnet, run};

const POOLS: u32 = 10_000;
const ROUNDS: usize = 21;

fn main() {
    println!("{:<76} {:>10} {:>10}  outcome", "one command", "median", "least");
    let free = with_pools(|_| true);
    let full = with_pools(|_| false);
    let last = with_pools(|number| number >= POOLS - 2);

    let groups = |request: &mut InterfaceRequest| {
        let patterns: Vec<_> = (0..64).map(|group| format!("g{group:02}-*").parse().unwrap()).collect();
        request.pools = PoolPatterns { ipv4: patterns.clone(), ipv6: patterns };
    };
    row(
        "16 interfaces, both families, 64 patterns, 10,000 pools: the first gives",
        &free,
        request(16, groups),
    );
    row("the same: only the last gives", &last, request(16, groups));
    row("the same: none gives", &full, request(16, groups));
    row(
        "16 interfaces, both families, no pool named, 10,000 default pools: none gives",
        &full,
        request(16, |_| ()),
    );
    row("the same, waiting", &full, waiting(request(16, |_| ())));
    row("the same: only the last gives", &last, request(16, |_| ()));

    let stars = |request: &mut InterfaceRequest| {
        request.pools =
            PoolPatterns { ipv4: vec!["*".parse().unwrap(); 64], ipv6: vec!["*".parse().unwrap(); 64] };
    };
    row("64 times `*` on 16 interfaces", &free, request(16, stars));
    let suffixes = |request: &mut InterfaceRequest| {
        let patterns: Vec<_> =
            (0..64).map(|number| format!("*[0-9]*[0-9]*{number}x").parse().unwrap()).collect();
        request.pools = PoolPatterns { ipv4: patterns.clone(), ipv6: patterns };
    };
    row("64 patterns that begin with wildcards and fit no pool", &free, request(16, suffixes));
    let hundreds = |request: &mut InterfaceRequest| {
        let patterns: Vec<_> = (0..64).map(|number| format!("g{number:02}-*").parse().unwrap()).collect();
        let place: usize = request.name.as_str().trim_start_matches("net").parse().unwrap();
        let mut ipv4 = patterns.clone();
        ipv4.rotate_left(place);
        request.pools = PoolPatterns { ipv4, ipv6: patterns };
    };
    row("64 patterns in another order on each interface: none gives", &full, request(16, hundreds));
    let by_value = |request: &mut InterfaceRequest| {
        let place: u8 = request.name.as_str().trim_start_matches("net").parse().unwrap();
        request.addresses = vec![IpAddr::from([10, 39, 15, 240 + place])];
    };
    row("16 addresses by value, no pool named", &free, request(16, by_value));
    let steps = |count: usize, state: &State| {
        let one = |number: usize| {
            let Action::Allocate(mut one) = request(1, groups) else { panic!() };
            one.endpoint = format!("pod/default/step-{number}").parse().unwrap();
            Action::Allocate(one)
        };
        row(
            &format!("a transaction of {count} such allocations, one interface each"),
            state,
            transaction((0..count).map(one)),
        );
    };
    steps(4, &last);
    steps(1000, &last);
    let bulk = |interfaces: usize, count: usize| {
        let one = move |number: usize| {
            let Action::Allocate(mut one) = request(interfaces, |request| {
                request.pools =
                    PoolPatterns { ipv4: vec!["four".parse().unwrap()], ipv6: vec!["six".parse().unwrap()] };
            }) else {
                panic!()
            };
            one.endpoint = format!("pod/default/step-{number}").parse().unwrap();
            Action::Allocate(one)
        };
        transaction((0..count).map(one))
    };
    row("a bulk of 1,000 allocations of both families from one pool each", &free, bulk(1, 1000));
    row("a bulk of 1,000 allocations of 16 interfaces", &free, bulk(16, 1000));
    row("a bulk of 90 allocations of 16 interfaces", &free, bulk(16, 90));
}

/// 10,000 default pools in 64 groups, half of each family, with one address each or none.
fn with_pools(gives: impl Fn(u32) -> bool) -> State {
    let mut state = State::new();
    run(&mut state, put_subnet("lan", "10.0.0.0/8"));
    run(&mut state, put_subnet("lan-six", "2001:db8::/32"));
    run(&mut state, put_subnet("big", "172.16.0.0/12"));
    run(&mut state, put_subnet("big-six", "2001:db9::/64"));
    run(&mut state, put_pool(fixtures::pool("four", "big")));
    run(&mut state, put_pool(fixtures::pool("six", "big-six")));
    for number in 0..POOLS {
        let (family, host) = (number % 2, number / 2);
        let (subnet, range) = match family {
            0 => ("lan", format!("10.{}.{}.1-10.{0}.{1}.250", host >> 8, host & 255)),
            _ => ("lan-six", format!("2001:db8:{host:x}::1-2001:db8:{host:x}::fa")),
        };
        let range = range.parse().unwrap();
        let exclude = if gives(number) { Vec::new() } else { vec![range] };
        let group = u64::from(number) * 64 / u64::from(POOLS);
        let pool = PoolSpec {
            ranges: vec![range],
            exclude,
            default: true,
            ..fixtures::pool(&format!("g{group:02}-{number:05}"), subnet)
        };
        run(&mut state, put_pool(pool));
    }
    state
}

fn request(interfaces: usize, set: impl Fn(&mut InterfaceRequest)) -> Action {
    let one = |number: usize| {
        let mut request = fixtures::interface(&format!("net{number}"));
        set(&mut request);
        request
    };
    let request = fixtures::allocate_for("pod/default/web", (0..interfaces).map(one).collect());
    Action::Allocate(Allocate { labels: [(Text::given("app"), Text::given("web"))].into(), ..request })
}

fn waiting(request: Action) -> Action {
    let Action::Allocate(mut request) = request else { panic!() };
    request.options.wait = true;
    Action::Allocate(request)
}

fn transaction(steps: impl Iterator<Item = Action>) -> Action {
    Action::Transaction(Transaction { preconditions: Vec::new(), steps: steps.collect() })
}

fn row(what: &str, state: &State, action: Action) {
    // `cargo bench … -- WORDS` measures the rows with these words, more often.
    let words: Option<String> = std::env::args().skip(1).find(|word| !word.starts_with("--"));
    if words.as_ref().is_some_and(|words| !what.contains(words)) {
        return;
    }
    let rounds = if words.is_some() { 20 * ROUNDS } else { ROUNDS };
    let command = command(action);
    let at = At { log_time_ms: 1000, wall_ms: 1_700_000_000_000, leadership: 0 };
    let mut took = Vec::new();
    let mut outcome = None;
    for _ in 0..rounds {
        let mut state = state.clone();
        let begun = Instant::now();
        let (decided, happened) = apply(&mut state, at, black_box(&command));
        took.push(begun.elapsed().as_micros());
        black_box(happened);
        outcome = Some(decided);
    }
    took.sort_unstable();
    let median = took.get(took.len() / 2).copied().unwrap();
    let least = took.first().copied().unwrap();
    let said = match outcome.unwrap() {
        Ok(_) => "done".to_owned(),
        Err(refusal) => refusal.code().to_string(),
    };
    println!("{what:<76} {median:>7} µs {least:>7} µs  {said}");
}
