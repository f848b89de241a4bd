//! Costs of the machine's commands, empty and with a million addresses held.
//!
//! `cargo bench -p ipam-machine --bench machine` prints a table of medians. The promise is that both are
//! equal.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a measurement that can't be made has failed"
)]

mod support;

use ipam_machine::command::Text;
use std::hint::black_box;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use ipam_api::Family;
use ipam_api::name::Name;
use ipam_api::request::AttachmentKey;
use ipam_api::resource::Lifecycle;
use ipam_machine::command::{Allocate, InterfaceRequest, PoolPatterns, ReleaseAttachment, Started};
use ipam_machine::free_set::FreeSet;
use ipam_machine::{Action, At, Loading, State, apply, fixtures};

use support::{command, name, put_pool, put_subnet, run};

/// Number of held addresses in the full state.
const MANY: u64 = 1_000_000;
/// Measured rounds of each kind.
const ROUNDS: u64 = 20_000;
/// Rounds in a row before it is the other state's turn.
const BLOCK: u64 = 200;
/// Attachments whose releases are remembered at a time.
const KEYS: u64 = 4000;
/// Asks the program for nothing but its memory.
const MEMORY: &str = "--memory";
/// Asks the program for nothing but how long a state takes to be read.
const LOAD: &str = "--load";

fn main() {
    if std::env::args().any(|word| word == LOAD) {
        return ["held", "attached"].into_iter().for_each(load);
    }
    if let Some(which) = std::env::args().skip_while(|word| word != MEMORY).nth(1) {
        return print_memory(&which);
    }
    println!("{:<44} {:>10} {:>10} {:>10} {:>10}", "", "median", "p99", "beside it:", "an empty");
    let mut empty = founded("10.0.0.0/24", "2001:db8::/64");
    let mut measure = |what: &str, mut full: State, v4| compare(what, (&mut full, v4), &mut empty, None);
    measure("empty /24 and /64", founded("10.0.0.0/24", "2001:db8::/64"), "four");
    for (count, words) in [(100, "100"), (1000, "1,000"), (10_000, "10,000"), (100_000, "100,000")] {
        measure(&format!("a /8 with {words} held"), filled("held", count), "four");
        measure(&format!("a /8 with {words} attached"), filled("attached", count), "four");
    }
    let mut eight = filled("held", MANY);
    add_pool(&mut eight, "small", "172.16.0.0/24");
    let kept = eight.clone();
    measure("a /8 with 1,000,000 held, from a clone", eight.clone(), "four");
    measure("an empty /24 beside it, from a clone", eight.clone(), "small");
    drop(kept);
    measure("a /8 with 1,000,000 held", eight, "four");
    measure("a /32 of IPv6 with 1,000,000 held, scattered", filled("scattered", MANY), "four");
    let attached = filled("attached", MANY);
    let begun = Instant::now();
    let clones: Vec<State> = (0..1000).map(|_| attached.clone()).collect();
    let clone_ns = begun.elapsed().as_nanos() / 1000;
    drop(clones);
    measure("a /8 with 1,000,000 attached", attached.clone(), "four");
    // As the store does after each entry, or after as many commands as wait for one.
    for (every, words) in [(1, "each ADD and DEL"), (16, "16 of them"), (128, "128 of them")] {
        let what = format!("the same, published after {words}");
        compare(&what, (&mut attached.clone(), "four"), &mut empty, Some(every));
    }
    drop(attached);
    println!();
    println!("a clone of a state with 1,000,000 attached {clone_ns:>9} ns");
    println!();
    free_sets();
    println!();
    for which in ["held", "attached"] {
        load(which);
    }
    println!();
    for which in ["held", "scattered", "attached"] {
        let memory = std::process::Command::new(std::env::current_exe().unwrap())
            .args([MEMORY, which])
            .output()
            .unwrap();
        print!("{}", String::from_utf8(memory.stdout).unwrap());
    }
}

/// Makes a state of its rows in one lane; a start uses several.
fn load(which: &str) {
    let state = filled(which, MANY);
    let (mut rows, mut loading) = (0, Loading::default());
    let begun = Instant::now();
    let mut reading = Duration::ZERO;
    let mut encoded = state.rows();
    loop {
        let before = Instant::now();
        let Some((key, row)) = encoded.next() else { break };
        reading += before.elapsed();
        loading.put(key, &row).unwrap();
        rows += 1;
    }
    let decoded = begun.elapsed();
    black_box(loading.finish().unwrap());
    let (read, decoded, all) =
        (reading.as_secs_f64(), (decoded - reading).as_secs_f64(), begun.elapsed().as_secs_f64());
    println!(
        "{which}: {rows} rows written in {read:.2} s, read in {decoded:.2} s, indexed in {:.2} s",
        all - decoded - read
    );
}

/// In a process of its own, since memory that was freed before would be used again unseen.
fn print_memory(which: &str) {
    let before = resident_kib();
    let state = filled(which, MANY);
    let bytes = (resident_kib() - before) * 1024 / MANY;
    println!("memory per allocation, {which:<10} with all that belongs to it {bytes:>6} bytes");
    drop(state);
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

// === States ===

fn founded(v4: &str, v6: &str) -> State {
    let mut state = State::new();
    for (pool, cidr) in [("four", v4), ("six", v6)] {
        add_pool(&mut state, pool, cidr);
    }
    state
}

fn add_pool(state: &mut State, pool: &str, cidr: &str) {
    run(state, put_subnet(pool, cidr));
    run(state, put_pool(fixtures::pool(pool, pool)));
}

/// So many allocations.
fn filled(how: &str, count: u64) -> State {
    let (v4, v6) = match how {
        "scattered" => ("10.0.0.0/24", "2001:db8::/32"),
        _ => ("10.0.0.0/8", "2001:db8::/64"),
    };
    let mut state = founded(v4, v6);
    let base = 0x2001_0db8_u128 << 96;
    for i in 0..count {
        let mut request = allocate(i, "held", if how == "scattered" { "" } else { "four" }, "");
        match how {
            "attached" => {
                request.attachment = Some(attachment(i, "held"));
                request.lifecycle = Lifecycle::Attached;
                request.started = Some(started(i));
            }
            "scattered" => {
                let spread = u128::from(i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
                let address: IpAddr = Family::V6.address(base | (spread >> 32));
                let one = request.interfaces.first_mut().unwrap();
                one.pools.ipv6 = vec![(&name("six")).into()];
                one.addresses = vec![address];
            }
            _ => {}
        }
        run(&mut state, Action::Allocate(request));
        if i % 1000 == 0 {
            state.take_touched();
        }
    }
    state.take_touched();
    state
}

fn allocate(number: u64, prefix: &str, v4: &str, v6: &str) -> Allocate {
    let pools = |pool: &str| if pool.is_empty() { Vec::new() } else { vec![(&name(pool)).into()] };
    let endpoint = format!("container/default/{prefix}-{number}");
    let pools = PoolPatterns { ipv4: pools(v4), ipv6: pools(v6) };
    fixtures::allocate_for(&endpoint, vec![InterfaceRequest { pools, ..fixtures::interface("eth0") }])
}

fn attachment(number: u64, prefix: &str) -> AttachmentKey {
    AttachmentKey {
        realm: Name::default_name(),
        node: format!("node-{}", number % 1000).parse().unwrap(),
        config: "lan".parse().unwrap(),
        container_id: format!("{prefix}-{number:058}").parse().unwrap(),
        interface: "eth0".parse().unwrap(),
    }
}

fn started(number: u64) -> Started {
    Started {
        boot_id: Text::given("5d1c4b1e-3f59-4f0f-9d11-1f2e3d4c5b6a"),
        at_us: 1_000_000 + number,
        start_ticks: Some(100 + number / 10_000),
    }
}

// === Measuring ===

/// ADD and DEL of an attachment with both families, alternating between the full and the empty pool.
/// Disturbances by other load so meet both.
fn compare(what: &str, (full, v4): (&mut State, &str), empty: &mut State, publish_every: Option<u64>) {
    let (mut times, mut beside) = (Vec::new(), Vec::new());
    for block in 0..ROUNDS / BLOCK {
        rounds((full, v4), block, publish_every, &mut times);
        rounds((empty, "four"), block, publish_every, &mut beside);
    }
    times.sort_unstable();
    beside.sort_unstable();
    let at = |times: &[u64], percent: usize| times.get((times.len() - 1) * percent / 100).copied().unwrap();
    println!(
        "{what:<44} {:>7} ns {:>7} ns {:>10} {:>7} ns",
        at(&times, 50),
        at(&times, 99),
        "",
        at(&beside, 50)
    );
}

fn rounds((state, v4): (&mut State, &str), block: u64, publish_every: Option<u64>, times: &mut Vec<u64>) {
    state.take_touched();
    let mut published = State::new();
    for i in block * BLOCK..(block + 1) * BLOCK {
        let mut request = allocate(i, "measured", v4, "six");
        let key = attachment(i % KEYS, "measured");
        request.attachment = Some(key.clone());
        request.lifecycle = Lifecycle::Attached;
        // What only ever rises, from one comparison to the next.
        let now = state.revision() * 2;
        request.started = Some(started(now));
        let release = ReleaseAttachment { key, started: started(now + 1) };
        let at = At { log_time_ms: 1000, wall_ms: 1_700_000_000_000, leadership: 0 };
        let add = command(Action::Allocate(request));
        let delete = command(Action::ReleaseAttachment(release));
        let begun = Instant::now();
        let (added, events) = apply(state, at, black_box(&add));
        let (deleted, more) = apply(state, at, black_box(&delete));
        if publish_every.is_some_and(|every| i.is_multiple_of(every)) {
            published = state.clone();
        }
        times.push(begun.elapsed().as_nanos() as u64);
        added.unwrap();
        deleted.unwrap();
        black_box((events, more));
    }
    black_box(published);
}

fn report(what: &str, mut times: Vec<u64>) {
    times.sort_unstable();
    let at = |percent: usize| times.get((times.len() - 1) * percent / 100).copied().unwrap();
    println!("{what:<58} {:>7} ns {:>7} ns", at(50), at(99));
}

fn free_sets() {
    let base = 10_u128 << 24;
    for (taken, words) in [(0, "nothing taken"), (MANY, "1,000,000 taken, scattered")] {
        let mut set = FreeSet::nothing_free(base, 24);
        set.give(base, base + (1 << 24) - 1);
        for i in 0..u128::from(taken) {
            let spread = base + (i * 0x9e_3779 % (1 << 24));
            set.take(spread, spread);
        }
        let mut from: u128 = 0;
        report(
            &format!("lowest free from x, a /8, {words}"),
            batches(|| {
                from = (from + 0x0012_3457) % (1 << 24);
                black_box(set.lowest_from(black_box(base + from)));
            }),
        );
        report(
            &format!("lowest free aligned /28, a /8, {words}"),
            batches(|| {
                black_box(set.lowest_block(black_box(4)));
            }),
        );
        report(
            &format!("take + give of one address, a /8, {words}"),
            batches(|| {
                from = (from + 0x0012_3457) % (1 << 24);
                let free = set.lowest_from(base + from).unwrap_or(base);
                set.take(free, free);
                set.give(free, free);
            }),
        );
    }
}

/// Times of one operation, each the mean of a hundred.
fn batches(mut operation: impl FnMut()) -> Vec<u64> {
    (0..1000)
        .map(|_| {
            let begun = Instant::now();
            for _ in 0..100 {
                operation();
            }
            begun.elapsed().as_nanos() as u64 / 100
        })
        .collect()
}
