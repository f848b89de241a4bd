//! Work whose instructions and heap blocks `cargo xtask costs` counts: `costs CASE COUNT`.
//!
//! Each case does the same preparation for any count. So the difference of two runs is the cost of the work
//! alone, and it is the same on every run: no clock, no randomness, no threads.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a measurement that can't be made has failed")]

use std::hint::black_box;
use std::ops::Range;

use ipam_api::access::Role;
use ipam_api::request::AllocateRequest;
use ipam_machine::batch::{Batch, Leadership, Opened};
use ipam_machine::command::{Allocate, InterfaceRequest, PoolPatterns};
use ipam_machine::fixtures::{self, put};
use ipam_machine::{Action, At, Command, Grant, State, Terms, apply};

/// Endpoints that exist before the work begins; a case may use up each of them once.
const PREPARED: usize = 4_000;
/// Commands of one entry.
const COMMANDS: usize = 64;
const AT: At = At { log_time_ms: 1_000, wall_ms: 1_700_000_000_000, leadership: 0 };

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (case, count) = (arguments.next().unwrap(), arguments.next().unwrap().parse::<usize>().unwrap());
    assert!(count <= PREPARED, "{count} operations");
    match case.as_str() {
        "apply-allocate" => {
            let mut state = prepared();
            publishing(&mut state, PREPARED..PREPARED + count, |number| allocate(number).into());
        }
        "apply-repeat" => {
            let mut state = prepared();
            publishing(&mut state, 0..count, |number| allocate(number).into());
        }
        "apply-release" => {
            let mut state = prepared();
            let release = |number| Action::ReleaseEndpoint { key: allocate(number).endpoint };
            publishing(&mut state, 0..count, release);
        }
        "entry-encode" => {
            let opened = opened();
            (0..count).for_each(|_| drop(black_box(Batch::seal(black_box(&opened)).unwrap())));
        }
        "entry-decode" => {
            let batch = Batch::seal(&opened()).unwrap();
            (0..count).for_each(|_| drop(black_box(black_box(&batch).open().unwrap())));
        }
        "request-decode" => {
            (0..count).for_each(|_| {
                let request = ipam_api::strict::from_slice::<AllocateRequest>(black_box(REQUEST));
                black_box(request.unwrap());
            });
        }
        other => panic!("no case {other}"),
    }
}

/// Body of an ADD.
const REQUEST: &[u8] = br#"{"endpoint":{"realm":"default","kind":"pod","namespace":"shop","name":"web-7"},
"uid":"0190f7c2-6d1e-7a60-9f0b-5b9f6a3c2d11","labels":{"app":"web","tier":"front"},"node":"node-17",
"interfaces":[{"name":"eth0","ipv4_pools":["four"],"ipv6_pools":["six"]}]}"#;

/// Dual-stack request of an endpoint.
fn allocate(number: usize) -> Allocate {
    let pools = PoolPatterns { ipv4: vec!["four".parse().unwrap()], ipv6: vec!["six".parse().unwrap()] };
    let interface = InterfaceRequest { pools, ..fixtures::interface("eth0") };
    fixtures::allocate_for(&format!("pod/shop/web-{number:06}"), vec![interface])
}

fn command(action: Action) -> Command {
    Command { terms: Terms::of(Grant::of(Role::Admin)), ..fixtures::command(action) }
}

fn run(state: &mut State, action: Action) {
    black_box(apply(state, AT, black_box(&command(action)))).0.unwrap();
}

/// Applies commands, and publishes the state as a member does: readers keep a clone.
fn publishing(state: &mut State, numbers: Range<usize>, action: impl Fn(usize) -> Action) {
    let mut _published = state.clone();
    for number in numbers {
        if number % COMMANDS == 0 {
            _published = state.clone();
            black_box((state.take_touched(), state.take_journaled()));
        }
        run(state, action(number));
    }
}

/// State with two pools and [`PREPARED`] endpoints.
fn prepared() -> State {
    let mut state = State::default();
    for (name, cidr) in [("four", "10.0.0.0/8"), ("six", "2001:db8::/64")] {
        run(&mut state, Action::PutSubnet(put(fixtures::subnet(name, cidr))));
        run(&mut state, Action::PutPool(put(fixtures::pool(name, name))));
    }
    (0..PREPARED).for_each(|number| run(&mut state, allocate(number).into()));
    state
}

/// Contents of an entry.
fn opened() -> Opened {
    let commands = (0..COMMANDS).map(|number| command(allocate(number).into())).collect();
    Opened { leadership: Leadership::Number(7), log_time_ms: AT.log_time_ms, wall_ms: AT.wall_ms, commands }
}
