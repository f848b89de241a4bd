//! Costs of delegation, with no prefix and with 100,000.
//!
//! `cargo bench -p ipam-machine --bench prefixes` prints a table of medians, each beside the cost of the same
//! in a state without prefixes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a measurement that can't be made has failed"
)]

mod support;

use std::hint::black_box;
use std::time::Instant;

use ipam_machine::command::{Delegate, PoolSpec, PrefixLevel, PrefixSource};
use ipam_machine::{Action, Answer, At, State, apply, fixtures};

use support::{command, name, put_pool, put_subnet, run};

/// Number of prefixes in the full state.
const MANY: u32 = 100_000;
/// Measured rounds of each kind.
const ROUNDS: u32 = 10_000;
/// Rounds in a row before it is the other state's turn.
const BLOCK: u32 = 200;

fn main() {
    println!(
        "{:<60} {:>9} {:>9} {:>9} {:>6}",
        "delegating and releasing", "median", "p99", "an empty", "ratio"
    );
    let (none, flat, deep) = (founded(), filled(1), filled(1_000));
    row("a /32 of a pool with 100,000 of them", &flat, &none, &[32]);
    row("a /28 of a pool with 100,000 /32", &flat, &none, &[28]);
    row("a /24 and a /32 in it, beside 100 times 1,000", &deep, &none, &[20, 24, 32]);
    let (mut flat, mut none) = (flat, none);
    let (full, empty) = (asked_again(&mut flat), asked_again(&mut none));
    println!("{:<60} {full:>6} ns {:>9} {empty:>6} ns {:>6}", "asking again", "", ratio(full, empty));
}

fn ratio(one: u128, other: u128) -> String {
    let hundredths = one * 100 / other.max(1);
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

fn founded() -> State {
    let mut state = State::new();
    run(&mut state, put_subnet("lan", "10.0.0.0/8"));
    run(&mut state, put_pool(PoolSpec { allow_edges: true, ..fixtures::pool("lan", "lan") }));
    state
}

/// So many prefixes of full length: of the pool, or so many below each of its blocks.
fn filled(each: u32) -> State {
    let mut state = founded();
    for number in 0..MANY {
        let owner = format!("o{number}");
        let (block, whole) = (format!("b{}", number / each), format!("n{}", number / each));
        let levels: &[(&str, u8)] = match each {
            1 => &[(&owner, 32)],
            _ => &[(&block, 20), (&whole, 22), (&owner, 32)],
        };
        run(&mut state, delegate(levels));
        state.take_touched();
        state.take_journaled();
    }
    state
}

fn delegate(levels: &[(&str, u8)]) -> Action {
    let level = |(owner, length): &(&str, u8)| PrefixLevel {
        owner: owner.parse().unwrap(),
        length: Some(*length),
        keep_edges: false,
        ttl_ms: Some(3_600_000),
    };
    let levels = levels.iter().map(level).collect();
    Action::Delegate(Delegate { from: PrefixSource::Pool(name("lan")), realm: name("default"), levels })
}

/// Delegates nested prefixes of these lengths and releases them, alternating with an empty state.
fn row(what: &str, full: &State, empty: &State, lengths: &[u8]) {
    let (mut full, mut empty) = (full.clone(), empty.clone());
    let (mut of_full, mut of_empty) = (Vec::new(), Vec::new());
    for block in 0..ROUNDS / BLOCK {
        for (state, took) in [(&mut full, &mut of_full), (&mut empty, &mut of_empty)] {
            for round in 0..BLOCK {
                let owner = format!("x{block}-{round}");
                let levels: Vec<(&str, u8)> =
                    lengths.iter().map(|length| (owner.as_str(), *length)).collect();
                took.push(once(state, delegate(&levels)));
            }
        }
    }
    of_full.sort_unstable();
    of_empty.sort_unstable();
    let at = |took: &[u128], percent: usize| took[(took.len() * percent / 100).min(took.len() - 1)];
    let (median, p99, beside) = (at(&of_full, 50), at(&of_full, 99), at(&of_empty, 50));
    println!("{what:<60} {median:>6} ns {p99:>6} ns {beside:>6} ns {:>6}", ratio(median, beside));
}

fn once(state: &mut State, action: Action) -> u128 {
    let at = At { log_time_ms: 1000, wall_ms: 1_700_000_000_000, leadership: 0 };
    let asked = command(action);
    let begun = Instant::now();
    let answer = black_box(apply(state, at, black_box(&asked))).0.unwrap().answer;
    let delegated = begun.elapsed();
    let Answer::Delegated { prefixes, .. } = answer else { panic!("{answer:?}") };
    let back = command(Action::ReleasePrefix { id: prefixes[0].id });
    let begun = Instant::now();
    black_box(apply(state, at, black_box(&back))).0.unwrap();
    // As a store does between commands.
    state.take_touched();
    state.take_journaled();
    (delegated + begun.elapsed()).as_nanos()
}

/// The median of asking for what is there.
fn asked_again(state: &mut State) -> u128 {
    let asked = command(delegate(&[("again", 32)]));
    let mut took = Vec::new();
    for _ in 0..ROUNDS {
        let at = At { log_time_ms: 1000, wall_ms: 1_700_000_000_000, leadership: 0 };
        let begun = Instant::now();
        black_box(apply(state, at, black_box(&asked))).0.unwrap();
        took.push(begun.elapsed().as_nanos());
    }
    took.sort_unstable();
    took[took.len() / 2]
}
