//! Costs of automatic pools, alone and beside 10,000 of them.
//!
//! `cargo bench -p ipam-machine --bench automatic` prints a table of medians, each beside the cost of the
//! same in a state without automatic pools.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a measurement that can't be made has failed"
)]

mod support;

use ipam_machine::command::Text;
use std::hint::black_box;
use std::time::Instant;

use ipam_api::name::Name;
use ipam_api::resource::PoolSize;
use ipam_machine::command::{
    Allocate, AutomaticPool, Controller, EndController, InterfaceRequest, ScaleController,
};
use ipam_machine::{Action, At, State, apply, fixtures};

use support::{command, name, put_pool, put_subnet, run};

/// Applications that have pools, where there are many.
const MANY: u32 = 10_000;
/// Measured rounds of each kind.
const ROUNDS: u32 = 2_000;

fn main() {
    println!("{:<56} {:>10} {:>10} {:>6}", "median of one command", "none", "10,000", "ratio");
    let (none, many) = (with(0), with(MANY));
    let fresh = |number: u32| allocate(MANY + number, "a", 5);
    row("the first endpoint of an application", &none, &many, fresh, |number| {
        vec![release(MANY + number), end(MANY + number)]
    });
    let (mut one, mut more) = (none, many);
    for state in [&mut one, &mut more] {
        run(state, allocate(MANY, "first", 3_000));
    }
    let next = |number: u32| allocate(MANY, &format!("a{number}"), 3_000);
    row("one more of its endpoints", &one, &more, next, |_| Vec::new());
    let named = |number: u32| named(&format!("a{number}"));
    row("the same from a pool that it names", &one, &more, named, |_| Vec::new());
    row("scaled up by one and down again", &one, &more, |_| scale(3_001), |_| vec![scale(3_000)]);
}

/// Subnet with this many applications, and an open pool. Each application has a pool of five addresses and
/// one allocation.
fn with(applications: u32) -> State {
    let mut state = State::new();
    run(&mut state, put_subnet("lan", "10.0.0.0/8"));
    run(&mut state, put_subnet("other", "11.0.0.0/8"));
    run(&mut state, put_pool(fixtures::pool("other", "other")));
    for number in 0..applications {
        run(&mut state, allocate(number, "a", 5));
        state.take_touched();
        state.take_journaled();
    }
    state
}

fn controller(number: u32) -> Controller {
    let name = format!("app-{number}").parse().unwrap();
    Controller {
        group: Text::given("apps"),
        kind: Text::given("Deployment"),
        name,
        uid: Some(Text::given("u")),
    }
}

fn request(endpoint: &str, interface: InterfaceRequest) -> Allocate {
    let request = fixtures::allocate_for(&format!("pod/shop/{endpoint}"), vec![interface]);
    Allocate { uid: Some(Text::given("u")), ..request }
}

fn allocate(application: u32, endpoint: &str, replicas: u32) -> Action {
    let interface = InterfaceRequest { subnets: vec![name("lan")], ..fixtures::interface("eth0") };
    let mut request = request(&format!("app-{application}-{endpoint}"), interface);
    request.stickiness.controller = Some(controller(application));
    request.automatic_pool = Some(AutomaticPool { size: PoolSize::Flexible(0), replicas, reclaim: true });
    Action::Allocate(request)
}

fn named(endpoint: &str) -> Action {
    let mut interface = fixtures::interface("eth0");
    interface.pools.ipv4 = vec![(&name("other")).into()];
    Action::Allocate(request(endpoint, interface))
}

fn scale(replicas: u32) -> Action {
    Action::ScaleController(ScaleController {
        realm: Name::default_name(),
        namespace: "shop".parse().unwrap(),
        controller: controller(MANY),
        replicas,
        start: 0,
    })
}

fn end(application: u32) -> Action {
    Action::EndController(EndController {
        realm: Name::default_name(),
        namespace: "shop".parse().unwrap(),
        controller: controller(application),
    })
}

fn release(application: u32) -> Action {
    Action::ReleaseEndpoint { key: format!("pod/shop/app-{application}-a").parse().unwrap() }
}

/// Measures a command in both states, each time undone by another one, if there is one.
fn row(
    what: &str,
    none: &State,
    many: &State,
    measured: impl Fn(u32) -> Action,
    undone: impl Fn(u32) -> Vec<Action>,
) {
    let median = |state: &State| {
        let mut state = state.clone();
        let mut took: Vec<u128> = (0..ROUNDS)
            .map(|number| {
                let took = once(&mut state, measured(number));
                undone(number).into_iter().for_each(|action| run(&mut state, action));
                state.take_touched();
                state.take_journaled();
                took
            })
            .collect();
        took.sort_unstable();
        took[took.len() / 2]
    };
    let (none, many) = (median(none), median(many));
    let hundredths = many * 100 / none.max(1);
    println!("{what:<56} {none:>7} ns {many:>7} ns {:>3}.{:02}", hundredths / 100, hundredths % 100);
}

fn once(state: &mut State, action: Action) -> u128 {
    let at = At { log_time_ms: 1000, wall_ms: 1_700_000_000_000, leadership: 0 };
    let asked = command(action);
    let begun = Instant::now();
    black_box(apply(state, at, black_box(&asked))).0.unwrap();
    begun.elapsed().as_nanos()
}
