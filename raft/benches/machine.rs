//! What the machine costs, empty and with a million addresses held: `cargo bench -p ipam-raft --bench machine`.
//!
//! The promise is that it makes no difference. A plain program: it prints a table of medians.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a measurement that can't be made has failed"
)]

use std::hint::black_box;
use std::net::IpAddr;
use std::time::Instant;

use ipam_api::Family;
use ipam_api::name::{Name, ObjectName};
use ipam_api::request::AttachmentKey;
use ipam_api::resource::{EndpointKey, EndpointKind, Lifecycle, Strategy};
use ipam_raft::machine::command::{
    Allocate, Dns, Expect, InterfaceWish, Origin, PoolIntention, Put, ReleaseAttachment, Remarks, Started,
    SubnetIntention, Via,
};
use ipam_raft::machine::free_set::FreeSet;
use ipam_raft::machine::{Action, At, Command, State, apply};

/// What "many" means here.
const MANY: u64 = 1_000_000;
/// Measured rounds of each kind.
const ROUNDS: u64 = 20_000;

fn main() {
    println!("{:<58} {:>10} {:>10}", "", "median", "p99");
    let small = founded("10.0.0.0/24", "2001:db8::/64");
    measure("ADD + DEL, both families, empty /24 and /64", small.clone());
    let before = resident_kib();
    let eight = filled(founded("10.0.0.0/8", "2001:db8::/64"), &Fill::FromTheBottom);
    let held = per_one(before);
    measure("ADD + DEL, a /8 with 1,000,000 held", eight.clone());
    measure_beside_a_clone("ADD + DEL, a /8 with 1,000,000 held, a clone kept", eight.clone());
    measure("ADD + DEL, empty /24 beside a full /8", beside(eight.clone()));
    drop(eight);
    let scattered = filled(founded("10.0.0.0/24", "2001:db8::/32"), &Fill::Scattered);
    measure("ADD + DEL, a /32 of IPv6 with 1,000,000 held, scattered", scattered.clone());
    drop(scattered);
    let before = resident_kib();
    let attached = filled(founded("10.0.0.0/8", "2001:db8::/64"), &Fill::Attached);
    let with_attachment = per_one(before);
    measure("ADD + DEL, a /8 with 1,000,000 attached", attached.clone());
    measure("the same in an empty /24 and /64 once more", small);
    free_sets();
    let started = Instant::now();
    let clones: Vec<State> = (0..1000).map(|_| attached.clone()).collect();
    println!(
        "{:<58} {:>7} ns",
        "clone of a state with 1,000,000 attached",
        started.elapsed().as_nanos() / 1000
    );
    drop(clones);
    println!();
    println!("memory per held allocation, its endpoint included        {held:>10} bytes");
    println!("memory per attached one, endpoint and attachment included {with_attachment:>9} bytes");
}

fn per_one(before_kib: u64) -> u64 {
    (resident_kib() - before_kib) * 1024 / MANY
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

// === States ===

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn command(action: Action) -> Command {
    let origin = Origin {
        principal: "bench".into(),
        via: Via::Cni,
        request_id: "0190f7c2-6d1e-7a60-9f0b-5b9f6a3c2d11".into(),
        comment: None,
        not_after_ms: None,
    };
    Command { origin, action }
}

fn run(state: &mut State, action: Action) {
    let at = At { log_time_ms: 1000, wall_ms: 1_700_000_000_000, term: 1 };
    let command = command(action);
    black_box(apply(state, at, black_box(&command))).0.unwrap();
}

fn founded(v4: &str, v6: &str) -> State {
    let mut state = State::new();
    for (pool, cidr) in [("four", v4), ("six", v6)] {
        add_pool(&mut state, pool, cidr);
    }
    state
}

fn add_pool(state: &mut State, pool: &str, cidr: &str) {
    let subnet = SubnetIntention {
        name: name(pool),
        network: Name::default_name(),
        cidr: cidr.parse().unwrap(),
        gateway: None,
        vlan: None,
        routes: Vec::new(),
        dns: Dns::default(),
        remarks: Remarks::default(),
    };
    run(state, Action::PutSubnet(Put { intention: subnet, expect: Expect::Anything }));
    let pool = PoolIntention {
        name: name(pool),
        subnet: name(pool),
        network: None,
        ranges: Vec::new(),
        exclude: Vec::new(),
        strategy: Strategy::Next,
        cooling_ms: 0,
        strict_cooling: false,
        allow_edges: false,
        default: false,
        disabled: false,
        terminating: false,
        remarks: Remarks::default(),
    };
    run(state, Action::PutPool(Put { intention: pool, expect: Expect::Anything }));
}

/// The full pool takes the place of the one that is measured, which becomes small and empty.
fn beside(mut state: State) -> State {
    add_pool(&mut state, "small", "172.16.0.0/24");
    state
}

enum Fill {
    FromTheBottom,
    Scattered,
    Attached,
}

fn filled(mut state: State, how: &Fill) -> State {
    let base = 0x2001_0db8_u128 << 96;
    for i in 0..MANY {
        let mut wish = allocate(i, "held", if matches!(how, Fill::Scattered) { "" } else { "four" }, "");
        match how {
            Fill::FromTheBottom => {}
            Fill::Attached => {
                wish.attachment = Some(attachment(i, "held"));
                wish.lifecycle = Lifecycle::Attached;
                wish.started = Some(started(i));
            }
            Fill::Scattered => {
                let spread = u128::from(i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
                let address: IpAddr = Family::V6.address(base | (spread >> 32));
                let one = wish.interfaces.first_mut().unwrap();
                one.ipv6_pools = vec![name("six")];
                one.addresses = vec![address];
            }
        }
        run(&mut state, Action::Allocate(wish));
        if i % 1000 == 0 {
            state.take_touched();
        }
    }
    state.take_touched();
    state
}

fn allocate(number: u64, prefix: &str, v4: &str, v6: &str) -> Allocate {
    let pools = |pool: &str| if pool.is_empty() { Vec::new() } else { vec![name(pool)] };
    Allocate {
        endpoint: EndpointKey {
            realm: Name::default_name(),
            kind: EndpointKind::Container,
            namespace: ObjectName::default_name(),
            name: format!("{prefix}-{number}").parse().unwrap(),
        },
        uid: None,
        node: None,
        attachment: None,
        lifecycle: Lifecycle::Held,
        interfaces: vec![InterfaceWish {
            name: "eth0".parse().unwrap(),
            ipv4_pools: pools(v4),
            ipv6_pools: pools(v6),
            addresses: Vec::new(),
            mac: None,
        }],
        started: None,
    }
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
    Started { boot_id: "5d1c4b1e-3f59-4f0f-9d11-1f2e3d4c5b6a".into(), at_us: 1_000_000 + number }
}

// === Measuring ===

fn measure(what: &str, mut state: State) {
    report(what, rounds(&mut state, |_| {}));
}

/// As while a snapshot is written: nothing may be changed in place.
fn measure_beside_a_clone(what: &str, mut state: State) {
    let mut kept = state.clone();
    report(what, rounds(&mut state, |state| kept = state.clone()));
}

fn rounds(state: &mut State, mut now_and_then: impl FnMut(&State)) -> Vec<u64> {
    let small = state.id_of(ipam_raft::machine::command::Kind::Pool, &name("small")).is_some();
    let v4 = if small { "small" } else { "four" };
    let mut times = Vec::with_capacity(ROUNDS as usize);
    for i in 0..ROUNDS {
        if i % 1000 == 0 {
            state.take_touched();
            now_and_then(state);
        }
        let mut wish = allocate(i, "measured", v4, "six");
        let key = attachment(i % 4000, "measured");
        wish.attachment = Some(key.clone());
        wish.lifecycle = Lifecycle::Attached;
        wish.started = Some(started(2 * i));
        let release = ReleaseAttachment { key, started: started(2 * i + 1) };
        let at = At { log_time_ms: 1000, wall_ms: 1_700_000_000_000, term: 1 };
        let add = command(Action::Allocate(wish));
        let delete = command(Action::ReleaseAttachment(release));
        let begun = Instant::now();
        let (added, events) = apply(state, at, black_box(&add));
        let (deleted, more) = apply(state, at, black_box(&delete));
        times.push(begun.elapsed().as_nanos() as u64);
        added.unwrap();
        deleted.unwrap();
        black_box((events, more));
    }
    times
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
        let mut from = 0;
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
