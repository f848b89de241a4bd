//! The work budget of a command: what must be possible, and what is refused before anything changes.

use std::collections::VecDeque;

use crate::support::script;
use crate::support::script::Line;
use ipam_api::access::NodeKey;
use ipam_api::limits::{
    BULK_ALLOCATIONS_MAX, EXPIRIES_PER_COMMAND_MAX, SELECTOR_NAMES_MAX, SKIPPED_LOOKED_THROUGH_MAX,
    SKIPPED_NAMED_MAX, WORK_PER_COMMAND_MAX,
};
use ipam_api::{Code, Family, Name};
use ipam_machine::command::{Grant, InterfaceRequest, PoolPatterns, Terms, Transaction};
use ipam_machine::explain::explain;
use ipam_machine::{Action, Answer, At, Command, Outcome, State, apply};

const AT: At = At { log_time_ms: 0, wall_ms: 1, leadership: 0 };

fn read(line: &str) -> Command {
    match script::read(line, &mut VecDeque::new()) {
        Line::Propose(command) | Line::Explain(command) => *command,
        Line::At(later, wall) => panic!("only a time: {later} {wall:?}"),
        Line::Leadership(number, grace_ms) => panic!("only a leadership: {number} {grace_ms}"),
        Line::Under(number) => panic!("only a leadership: {number}"),
        Line::Show(what, which) => panic!("only a look: {what} {which}"),
        Line::Unreadable(problem) => panic!("{problem:?}"),
    }
}

fn say(state: &mut State, line: &str) -> Outcome {
    apply(state, AT, &read(line)).0
}

/// So many default pools in 64 groups, every other one of IPv6; the first so many give nothing.
fn with_pools(count: u32, full: u32) -> State {
    let mut state = State::new();
    say(&mut state, "put subnet four cidr=10.0.0.0/8").unwrap();
    say(&mut state, "put subnet six cidr=2001:db8::/32").unwrap();
    for number in 0..count {
        let (group, host) = (number * 64 / count, number / 2);
        let range = match number % 2 {
            0 => format!("10.{}.{}.1-10.{0}.{1}.250", host >> 8, host & 255),
            _ => format!("2001:db8:{host:x}::1-2001:db8:{host:x}::fa"),
        };
        let subnet = if number % 2 == 0 { "four" } else { "six" };
        let exclude = if number < full { format!(" exclude={range}") } else { String::new() };
        let line =
            format!("put pool g{group:02}-{number:05} subnet={subnet} ranges={range} default{exclude}");
        say(&mut state, &line).unwrap();
    }
    state
}

/// The same with a large pool of each family, `big` and `big-six`.
fn with_big_pools(mut state: State) -> State {
    for (name, cidr) in [("big", "172.16.0.0/16"), ("big-six", "2001:db9::/64")] {
        say(&mut state, &format!("put subnet {name} cidr={cidr}")).unwrap();
        say(&mut state, &format!("put pool {name} subnet={name}")).unwrap();
    }
    state
}

/// A request for so many interfaces, each with what `set` says of it.
fn ask(interfaces: usize, set: impl Fn(usize, &mut InterfaceRequest)) -> Command {
    let mut command = read("allocate host/web net0");
    let Action::Allocate(request) = &mut command.action else { panic!() };
    let one = request.interfaces[0].clone();
    request.interfaces = (0..interfaces)
        .map(|number| {
            let mut interface =
                InterfaceRequest { name: format!("net{number}").parse().unwrap(), ..one.clone() };
            set(number, &mut interface);
            interface
        })
        .collect();
    command
}

/// The same patterns for both families.
fn patterns(all: impl Iterator<Item = String>) -> PoolPatterns {
    let all: Vec<_> = all.map(|pattern| pattern.parse().unwrap()).collect();
    PoolPatterns { ipv4: all.clone(), ipv6: all }
}

/// A pattern for each group of pools, beginning with one of them.
fn groups(first: usize) -> PoolPatterns {
    patterns((0..64).map(|group| format!("g{:02}-*", (first + group) % 64)))
}

/// Many times the same request, for different endpoints.
fn steps(count: usize, one: &Command) -> Command {
    let step = |number: usize| {
        let Action::Allocate(mut request) = one.action.clone() else { panic!() };
        request.endpoint = format!("pod/default/step-{number}").parse().unwrap();
        Action::Allocate(request)
    };
    let steps = (0..count).map(step).collect();
    Command { action: Action::Transaction(Transaction { preconditions: Vec::new(), steps }), ..one.clone() }
}

fn done(state: &State, command: &Command) -> Answer {
    apply(&mut state.clone(), AT, command).0.unwrap().answer
}

/// The outcome of a command that must change nothing but log time.
#[track_caller]
fn refused(state: &State, command: &Command) {
    let mut changed = state.clone();
    let (outcome, events) = apply(&mut changed, AT, command);
    assert_eq!(outcome.unwrap_err().code(), Code::LimitExceeded);
    assert_eq!(changed.digest(), state.digest(), "a refused command has changed something");
    assert!(events.is_empty(), "{events:?}");
}

#[test]
fn the_largest_requests_that_are_meant_are_carried_out() {
    // 16 interfaces, both families, 64 patterns, 10,000 pools.
    let state = with_pools(10_000, 0);
    let Answer::Allocated { interfaces, .. } = done(&state, &ask(16, |_, request| request.pools = groups(0)))
    else {
        panic!("not allocated");
    };
    let addresses: usize = interfaces.iter().map(|interface| interface.addresses.len()).sum();
    assert_eq!(addresses, 32);
    // The same with no pool named, and with each address by value.
    done(&state, &ask(16, |_, _| ()));
    done(
        &state,
        &ask(16, |number, request| {
            request.addresses = vec![format!("10.19.{}.7", number + 1).parse().unwrap()]
        }),
    );
    // A bulk of 1,000 allocations of both families.
    let state = with_big_pools(state);
    let bulk = steps(1000, &ask(1, |_, request| request.pools = patterns(["big*".to_owned()].into_iter())));
    let Answer::Steps(answers) = done(&state, &bulk) else { panic!("no steps") };
    assert_eq!(answers.len(), 1000);
    // 4,000 of them are full, and come first.
    let state = with_pools(10_000, 4_000);
    done(&state, &ask(16, |_, request| request.pools = groups(0)));
    done(&state, &ask(16, |_, _| ()));
}

#[test]
fn a_command_above_the_work_budget_is_refused_and_changes_nothing() {
    let state = with_pools(1000, 1000);
    // Each interface has another list of its own: none of them is like another.
    let stars = patterns((0..64).map(|number| format!("*[0-9]*[0-9]*{number}*")));
    let rotated = |number: usize, request: &mut InterfaceRequest| {
        request.pools = stars.clone();
        request.pools.ipv4.rotate_left(number);
        request.pools.ipv6.rotate_left(number);
    };
    let Action::Transaction(_) = steps(10, &ask(16, rotated)).action else { panic!() };
    let roomy = with_pools(1000, 0);
    refused(&roomy, &ask(16, rotated));
    refused(&roomy, &steps(10, &ask(16, rotated)));
    // Full pools are looked at one by one, in each step again.
    let full_but_last = with_pools(1000, 998);
    refused(&full_but_last, &steps(100, &ask(1, |_, request| request.pools = groups(0))));
    refused(&full_but_last, &steps(100, &ask(1, |_, _| ())));
    // A bulk that looks at one pool of each family, and writes too many rows.
    let big = with_big_pools(State::new());
    let named = |name: &str| vec![name.parse().unwrap()];
    let both = PoolPatterns { ipv4: named("big"), ipv6: named("big-six") };
    refused(&big, &steps(1000, &ask(2, |_, request| request.pools = both.clone())));
    // What is refused for another reason still is, and by the same budget where it waits.
    let Command { action: Action::Allocate(mut request), .. } =
        ask(16, |_, request| request.pools = groups(0))
    else {
        panic!()
    };
    let exhausted = apply(
        &mut state.clone(),
        AT,
        &Command { action: Action::Allocate(request.clone()), ..read("expire") },
    );
    assert_eq!(exhausted.0.unwrap_err().code(), Code::PoolExhausted);
    request.options.wait = true;
    let waits =
        apply(&mut state.clone(), AT, &Command { action: Action::Allocate(request), ..read("expire") });
    assert!(matches!(waits.0.unwrap().answer, Answer::Pending(_)));
}

#[test]
fn a_bulk_of_thousands_is_carried_out_and_a_larger_one_refused() {
    let state = with_big_pools(State::new());
    let many = |count: usize| {
        let others: Vec<String> = (1..count).map(|number| format!("b-{number}")).collect();
        read(&format!("allocate vm/batch/b-0 eth0 ipv4_pools=big others={}", others.join(",")))
    };
    refused(&state, &many(3600));
    let mut state = state;
    for repeated in [0, 3000] {
        let (outcome, events) = apply(&mut state, AT, &many(3000));
        let Answer::AllocatedMany(given) = outcome.unwrap().answer else { panic!("another answer") };
        assert_eq!((given.addresses.len(), given.repeated.len()), (3000, repeated));
        assert_eq!(events.len(), 3000 - repeated);
    }
    let ids: Vec<String> =
        state.allocations.iter().map(|(id, _)| (id.get() & 0xff_ffff).to_string()).collect();
    let release = read(&format!("release allocations {}", ids.join(" ")));
    match apply(&mut state, AT, &release).0.unwrap().answer {
        Answer::AllocationsReleased { addresses, gone } => assert_eq!((addresses.len(), gone), (3000, 0)),
        other => panic!("{other:?}"),
    }
    assert!(state.allocations.is_empty() && state.endpoints.is_empty());
}

#[test]
fn a_bulk_release_counts_what_is_gone_and_examines_each_endpoint_once() {
    let mut state = State::new();
    say(&mut state, "put subnet four cidr=10.0.0.0/8").unwrap();
    say(&mut state, "put pool web subnet=four default").unwrap();
    // 10 endpoints with 250 allocations each.
    for number in 0..2500 {
        let (endpoint, interface) = (number / 250, number % 250);
        say(&mut state, &format!("allocate vm/default/v-{endpoint} net{interface}")).unwrap();
    }
    let all: Vec<_> = state.allocations.iter().map(|(id, _)| id).collect();
    let Answer::AllocationsReleased { addresses, gone } =
        done(&state, &Command { action: Action::ReleaseAllocations { ids: all }, ..read("expire") })
    else {
        panic!("another answer");
    };
    assert_eq!((addresses.len(), gone), (2500, 0));
    let ids = (1..=BULK_ALLOCATIONS_MAX as u64).map(Into::into).collect();
    let gone = Action::ReleaseAllocations { ids };
    let times = |count: usize| {
        let transaction = Transaction { preconditions: Vec::new(), steps: vec![gone.clone(); count] };
        Command { action: Action::Transaction(transaction), ..read("expire") }
    };
    done(&state, &times(10));
    refused(&state, &times(20));
}

#[test]
fn incarnations_are_counted_each_time_that_a_request_looks_at_them() {
    let mut state = State::new();
    say(&mut state, "put subnet four cidr=10.0.0.0/16").unwrap();
    say(&mut state, "put pool web subnet=four default").unwrap();
    for number in 0..2000 {
        say(&mut state, &format!("allocate pod/default/a eth0 node=n1 uid=u{number}")).unwrap();
    }
    let of_node =
        Terms::of(Grant::of_node(NodeKey { realm: Name::default_name(), name: "n1".parse().unwrap() }));
    // The rights of a node depend on all of them, and an older one is found by its uid.
    let newest = Command { terms: of_node, ..read("allocate pod/default/a eth0 node=n1") };
    let oldest = read("allocate pod/default/a eth0 node=n1 uid=u0");
    for one in [newest, oldest] {
        let times = |count: usize| {
            let transaction =
                Transaction { preconditions: Vec::new(), steps: vec![one.action.clone(); count] };
            Command { action: Action::Transaction(transaction), ..one.clone() }
        };
        done(&state, &times(10));
        refused(&state, &times(30));
    }
}

#[test]
fn patterns_cost_what_is_looked_at_and_not_what_they_stand_for() {
    // 32 lists that each stand for 10,000 pools: the first of each gives.
    let state = with_pools(10_000, 0);
    done(
        &state,
        &ask(16, |number, request| {
            request.pools = patterns(["g*".to_owned(), format!("g0{}-*", number % 10)].into_iter());
        }),
    );
    // A pool that comes in between is found by the steps after it.
    let mut state = with_pools(64, 64);
    let ask = |name: &str| format!("allocate host/{name} eth0 ipv4_pools=new*");
    let transaction = [
        "transaction",
        "put subnet more cidr=172.16.0.0/24",
        "put pool new-0 subnet=more ranges=172.16.0.1-172.16.0.1",
        &ask("a"),
        "put pool new-1 subnet=more ranges=172.16.0.2-172.16.0.2",
        &ask("b"),
        "end",
    ];
    let mut lines: VecDeque<&str> = transaction.into_iter().collect();
    let first = lines.pop_front().unwrap();
    let Line::Propose(command) = script::read(first, &mut lines) else { panic!() };
    let Answer::Steps(answers) = apply(&mut state, AT, &command).0.unwrap().answer else { panic!() };
    let address = |answer: &Answer| match answer {
        Answer::Allocated { interfaces, .. } => interfaces[0].addresses[0].address.addr().to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        (address(&answers[2]), address(&answers[4])),
        ("172.16.0.1".to_owned(), "172.16.0.2".to_owned())
    );
}

#[test]
fn requests_that_wait_are_served_by_a_budget_of_their_own() {
    // The only pool of one of its patterns is behind 2,000 others.
    let mut state = with_pools(4000, 4000);
    say(&mut state, "put subnet more cidr=172.16.0.0/24").unwrap();
    say(&mut state, "put pool one subnet=more ranges=172.16.0.0-172.16.0.255 disabled").unwrap();
    for number in 0..60 {
        let line = format!("allocate claim/c{number} eth0 ipv4_pools=one,*-03998 families=4 wait");
        let outcome = say(&mut state, &line);
        assert!(matches!(outcome.unwrap().answer, Answer::Pending(_)));
    }
    let served = |state: &State| state.allocations.len();
    say(&mut state, "put pool one subnet=more ranges=172.16.0.0-172.16.0.255").unwrap();
    let first = served(&state);
    assert!((1..60).contains(&first), "{first} of 60 were served by one command");
    let mut commands = 1;
    while served(&state) < 60 {
        let before = served(&state);
        say(&mut state, "expire").unwrap();
        assert!(served(&state) > before, "no further claim was served");
        commands += 1;
    }
    assert!(commands > 1);
}

#[test]
fn an_explanation_is_bounded_as_its_request_is() {
    let state = with_pools(1000, 998);
    let stars = patterns((0..64).map(|number| format!("*[0-9]*[0-9]*{number}*")));
    let expensive = ask(16, |number, request| {
        request.pools = stars.clone();
        request.pools.ipv4.rotate_left(number);
    });
    let explanation = explain(&state, AT, &expensive);
    assert_eq!(explanation.outcome.unwrap_err().code(), Code::LimitExceeded);
    assert!(explanation.choices.len() < 32, "what was cut short is not explained");
    let cheap = explain(&state, AT, &ask(16, |_, request| request.pools = groups(0)));
    assert_eq!((cheap.outcome.is_ok(), cheap.choices.len()), (true, 32));
}

#[test]
fn a_command_that_would_change_too_many_rows_is_refused_before_any() {
    let mut state = State::new();
    say(&mut state, "put subnet four cidr=10.0.0.0/16").unwrap();
    say(&mut state, "put pool web subnet=four default").unwrap();
    let mut number = 0;
    // An endpoint and its allocation are two rows, and three rows one unit.
    let many = WORK_PER_COMMAND_MAX * 3 / 2 + 2;
    while number < many {
        let line = format!("allocate pod/default/db-{number} eth0 controller=apps/StatefulSet/db");
        say(&mut state, &line).unwrap();
        number += 1;
    }
    refused(&state, &read("end-of default/apps/StatefulSet/db"));
    refused(&state, &read("scale default/apps/StatefulSet/db replicas=0"));
}

/// Log time must not be zero: a released prefix ends before any.
#[test]
fn a_released_prefix_with_much_below_it_is_cleared_away_in_the_grace_of_a_leadership_too() {
    let at = At { log_time_ms: 5, ..AT };
    let mut state = State::new();
    state.begin_leadership(0, 30_000);
    let mut say = |line: &str| apply(&mut state, at, &read(line)).0.unwrap();
    say("put subnet lan cidr=10.0.0.0/16");
    say("put pool wide subnet=lan edges");
    let Answer::Delegated { prefixes, .. } = say("delegate from=wide whole/20").answer else { panic!() };
    let id = prefixes[0].id.get() - script::EPOCH;
    for part in 0..=EXPIRIES_PER_COMMAND_MAX {
        say(&format!("delegate from=#{id} part-{part}/28"));
    }
    let released = say(&format!("release prefix {id}"));
    assert!(matches!(released.answer, Answer::PrefixReleased { ending: true, .. }), "{released:?}");
    say("expire");
    assert_eq!(state.prefixes.len(), 0);
}

#[test]
fn an_address_by_value_is_looked_up_within_the_budget() {
    // The pool that has it comes first, or behind 9,998 of both families.
    let state = with_pools(20_000, 0);
    let by_value = |first: usize| {
        ask(1, |_, request| {
            (request.pools, request.families) = (groups(first), vec![Family::V4]);
            request.addresses = vec!["10.39.15.7".parse().unwrap()];
        })
    };
    done(&state, &by_value(63));
    refused(&state, &by_value(0));
    // One that is adopted is looked up among all of them.
    let Command { action: Action::Allocate(mut request), .. } = by_value(63) else { panic!() };
    (request.options.adopt, request.interfaces[0].pools.ipv6) = (true, Vec::new());
    refused(&state, &Command { action: Action::Allocate(request), ..read("expire") });
}

#[test]
fn an_explanation_counts_and_names_a_bounded_number_of_skipped_pools() {
    let mut state = State::new();
    let subnet = Name::new("lan").unwrap();
    say(&mut state, "put subnet lan cidr=10.0.0.0/8").unwrap();
    say(&mut state, "put pool any subnet=lan ranges=10.255.0.1 default").unwrap();
    let put = |state: &mut State, number: usize, nodes: &str| {
        let (high, low) = (number >> 8, number & 255);
        let line =
            format!("put pool p{number:05} subnet={subnet} ranges=10.{high}.{low}.1 default nodes={nodes}");
        say(state, &line).unwrap();
    };
    let others = SKIPPED_NAMED_MAX + 10;
    for number in 0..others {
        put(&mut state, number, "n1");
    }
    let explained =
        |state: &State| explain(state, AT, &read("allocate host/web eth0 node=n9")).choices[0].clone();
    let choice = explained(&state);
    assert_eq!((choice.candidates.len(), choice.skipped.len(), choice.more), (1, 1, false));
    let only = &choice.skipped[0];
    assert_eq!((only.count, only.pools.len()), (others as u64, 1 + SKIPPED_NAMED_MAX));
    // What is found by many nodes has as many entries.
    let nodes: Vec<String> = (0..SELECTOR_NAMES_MAX).map(|number| format!("m{number}")).collect();
    let many = (SKIPPED_LOOKED_THROUGH_MAX - others) / SELECTOR_NAMES_MAX;
    for number in 0..=many {
        put(&mut state, others + number, &nodes.join(","));
    }
    let choice = explained(&state);
    assert!(choice.more, "not all of them were looked at");
    assert!(choice.skipped[0].count <= SKIPPED_LOOKED_THROUGH_MAX as u64);
}

#[test]
fn a_pool_with_more_addresses_in_use_than_the_budget_shrinks_as_they_are_released() {
    let mut state = State::new();
    let held = usize::try_from(WORK_PER_COMMAND_MAX).unwrap() + 1;
    say(&mut state, "put subnet lan cidr=10.0.0.0/16 automatic automatic-max=65536").unwrap();
    let ask = |number: usize, replicas: usize| {
        format!(
            "allocate pod/shop/w{number} eth0 subnets=lan attach=n1/net/c{number} started=b:1 \
             controller=apps/Deployment/web automatic=+0 replicas={replicas}"
        )
    };
    for number in 0..held {
        say(&mut state, &ask(number, held + 3)).unwrap();
    }
    let pool = |state: &State| state.pools.iter().next().map(|(id, row)| (id, row.clone())).unwrap();
    let size = |state: &State| state.space(pool(state).0).unwrap().counts().size;
    assert_eq!(size(&state), held as u128 + 3);
    // Neither a repeated request, nor a new one, nor the scale is refused.
    for line in [ask(0, 1), ask(held, 1), "scale shop/apps/Deployment/web replicas=1".to_owned()] {
        say(&mut state, &line).unwrap();
        let (_, row) = pool(&state);
        assert_eq!((size(&state), row.automatic.unwrap().replicas), (held as u128 + 3, 1));
    }
}
