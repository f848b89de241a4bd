//! Costs of bulk commands for one address: `cargo bench -p ipam-machine --bench bulk`.
//!
//! The program prints bytes of log, answer, journal and rows for each address, and times. For instructions
//! run it as `perf stat -e instructions:u … KIND ROUNDS` with two numbers of rounds, and divide the
//! difference by their addresses; for a profile run it by callgrind in the same way.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a measurement that can't be made has failed"
)]

mod support;

use std::hint::black_box;
use std::time::Instant;

use ipam_machine::batch::{Batch, Leadership, Opened};
use ipam_machine::command::{AllocateMany, Transaction};
use ipam_machine::journal::Journaled;
use ipam_machine::{Action, At, State, carry_out, fixtures};

use support::{command, put_pool, put_subnet, run};

/// Addresses of one command.
const ADDRESSES: usize = 1000;
const AT: At = At { log_time_ms: 1000, wall_ms: 1_700_000_000_000, leadership: 0 };

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let rounds = words.get(1).map_or(50, |rounds| rounds.parse().unwrap());
    println!(
        "{:<24} {:>9} {:>7} {:>7} {:>8} {:>7}",
        "for each address", "time", "log", "answer", "journal", "rows"
    );
    let kinds = [("transaction", transaction as fn(usize) -> Action), ("bulk", bulk)];
    for (kind, action) in kinds {
        if words.first().is_none_or(|word| word == kind) {
            measure(kind, rounds, action);
        }
    }
}

/// Commands after each other on one state, each with the steps of a member: decode, apply, publish.
fn measure(kind: &str, rounds: usize, action: fn(usize) -> Action) {
    let mut state = State::new();
    run(&mut state, put_subnet("lan", "10.0.0.0/8"));
    run(&mut state, put_pool(fixtures::pool("four", "lan")));
    let (mut log, mut answer, mut journal, mut rows, mut took_ns) = (0, 0, 0, 0, 0);
    for round in 0..rounds {
        let sealed = Batch::seal(&Opened {
            leadership: Leadership::Number(1),
            log_time_ms: AT.log_time_ms,
            wall_ms: AT.wall_ms,
            commands: vec![command(action(round))],
        })
        .unwrap();
        log += sealed.size();
        let begun = Instant::now();
        let opened = sealed.open().unwrap();
        let (outcome, _) = carry_out(&mut state, AT, black_box(opened.commands.first().unwrap()));
        black_box(state.clone());
        took_ns += begun.elapsed().as_nanos();
        answer += postcard_size(&outcome.unwrap());
        for journaled in state.take_journaled() {
            if let Journaled::Frame { bytes, .. } = journaled {
                journal += bytes.len();
            }
        }
        let touched: std::collections::BTreeSet<_> = state.take_touched().into_iter().collect();
        rows += touched.into_iter().filter_map(|key| state.row(key)).map(|row| row.len()).sum::<usize>();
    }
    let addresses = (rounds * ADDRESSES).max(1);
    println!(
        "{kind:<24} {:>6} ns {:>7} {:>7} {:>8} {:>7}",
        took_ns / addresses as u128,
        log / addresses,
        answer / addresses,
        journal / addresses,
        rows / addresses
    );
}

fn postcard_size(value: &impl serde::Serialize) -> usize {
    postcard::experimental::serialized_size(value).unwrap()
}

fn endpoint(round: usize, number: usize) -> String {
    format!("web-{round}-{number:04}")
}

fn transaction(round: usize) -> Action {
    let one = |number| {
        let endpoint = format!("vm/default/batch/{}", endpoint(round, number));
        Action::Allocate(fixtures::allocate(&endpoint, "four"))
    };
    Action::Transaction(Transaction { preconditions: Vec::new(), steps: (0..ADDRESSES).map(one).collect() })
}

fn bulk(round: usize) -> Action {
    let request = fixtures::allocate(&format!("vm/default/batch/{}", endpoint(round, 0)), "four");
    let others = (1..ADDRESSES).map(|number| endpoint(round, number).parse().unwrap()).collect();
    Action::AllocateMany(Box::new(AllocateMany { request, others }))
}
