//! The same request under the same key gives the same answer and changes nothing.

use std::collections::BTreeMap;

use ipam_api::Code;
use ipam_api::limits::{
    IDEMPOTENCY_KEYS_PER_PRINCIPAL_MAX, IDEMPOTENCY_TTL_MS, LABELS_MAX, REPLAY_BYTES_MAX,
    REPLAY_BYTES_PER_PRINCIPAL_MAX,
};
use ipam_machine::command::{Idempotency, Metadata, NetworkSpec, OnLinks, Text, Transaction, Via};
use ipam_machine::fixtures::{self, origin, put};
use ipam_machine::{Action, Answer, Applied, At, Command, Origin, Outcome, State, Terms, apply};
use proptest::prelude::*;

use crate::access::world::{World, admin, hold, network, pool, under_key};
use crate::support::random::{Dice, Draw};

#[test]
fn an_answer_is_kept_and_given_again() {
    let mut world = World::new();
    let terms = || under_key(admin(), "key", 7);
    let first = world.run(terms(), network("blue")).unwrap();
    assert!(!first.replayed);
    world.run(admin(), network("red")).unwrap();
    let before = world.state.digest();
    let again = world.run(terms(), network("blue")).unwrap();
    assert!(again.replayed);
    assert_eq!((again.revision, &again.answer), (first.revision, &first.answer));
    assert_eq!(world.state.digest(), before);
}

#[test]
fn a_refusal_by_rule_is_kept_too() {
    let mut world = World::new();
    let action = || Action::Allocate(hold(None, "host/a", "new"));
    let terms = || under_key(admin(), "key", 7);
    let first = world.run(terms(), action()).unwrap_err();
    world.run(admin(), pool("new", "lan", "10.0.0.50", crate::access::world::labelled(&[]))).unwrap();
    let again = world.run(terms(), action()).unwrap_err();
    assert_eq!((again.code(), &again.detail(), again.replayed), (first.code(), &first.detail(), true));
    // Asked anew it works.
    assert!(world.run(under_key(admin(), "another", 7), action()).is_ok());
}

#[test]
fn a_key_is_for_one_request_of_one_principal() {
    let mut world = World::new();
    world.run_as("alice", under_key(admin(), "key", 7), network("blue")).unwrap();
    let other = world.run_as("alice", under_key(admin(), "key", 8), network("red")).unwrap_err();
    assert_eq!(other.code(), Code::IdempotencyKeyReused);
    let bob = world.run_as("bob", under_key(admin(), "key", 8), network("red")).unwrap();
    assert!(!bob.replayed);
}

#[test]
fn unauthorised_and_late_requests_are_not_kept() {
    let mut world = World::new();
    let late = |not_after_ms| {
        let origin = Origin { not_after_ms, ..origin("alice") };
        Command { origin, terms: under_key(admin(), "key", 7), action: network("blue") }
    };
    assert_eq!(world.apply(&late(Some(5))).unwrap_err().code(), Code::DeadlineExceeded);
    assert!(!world.apply(&late(None)).unwrap().replayed);
}

#[test]
fn keys_are_forgotten_by_log_time_and_number_in_the_order_of_the_log() {
    let mut world = World::new();
    world.run(under_key(admin(), "old", 7), network("blue")).unwrap();
    assert_eq!(world.state.next_expiry_ms(), Some(world.log_time_ms + IDEMPOTENCY_TTL_MS));
    world.log_time_ms += IDEMPOTENCY_TTL_MS - 1;
    assert!(world.run(under_key(admin(), "old", 7), network("blue")).unwrap().replayed);
    world.log_time_ms += 1;
    assert!(!world.run(under_key(admin(), "old", 7), network("blue")).unwrap().replayed);

    let mut state = State::new();
    let run = |state: &mut State, principal: &str, key: usize| {
        let at = At { log_time_ms: 1, wall_ms: 1, leadership: 0 };
        let origin = origin(principal);
        let terms = under_key(admin(), &format!("key-{key}"), 7);
        apply(state, at, &Command { origin, terms, action: network("blue") }).0.unwrap().replayed
    };
    run(&mut state, "bob", 0);
    for key in 0..=IDEMPOTENCY_KEYS_PER_PRINCIPAL_MAX {
        assert!(!run(&mut state, "alice", key));
    }
    assert_eq!(state.replays.len(), IDEMPOTENCY_KEYS_PER_PRINCIPAL_MAX + 1);
    assert!(run(&mut state, "alice", 1), "the second oldest is kept");
    assert!(!run(&mut state, "alice", 0), "the oldest went");
    assert!(run(&mut state, "bob", 0), "a caller's replays stay while another's are forgotten");
}

/// Says so often what a network is that its answer has more than six million bytes.
fn large() -> Action {
    let annotations: BTreeMap<Text, Text> = (0..LABELS_MAX)
        .map(|at| (Text::given(format!("{at:0>250}")), Text::given("x".repeat(250))))
        .collect();
    let metadata = Metadata { annotations, ..Metadata::default() };
    let put = put(NetworkSpec { metadata, ..fixtures::network("large") });
    let steps = vec![Action::PutNetwork(put); 200];
    Action::Transaction(Transaction { preconditions: Vec::new(), steps })
}

fn run(state: &mut State, principal: &str, key: &str, action: Action) -> Outcome {
    let origin = origin(principal);
    let command = Command { origin, terms: under_key(admin(), key, 7), action };
    apply(state, At { log_time_ms: 1, wall_ms: 1, leadership: 0 }, &command).0
}

/// The keys of a principal's answers that are kept, in the order of the log.
fn kept(state: &State, principal: &str) -> Vec<String> {
    let rows = state.replays.iter().filter(|(_, row)| &*row.principal == principal);
    rows.map(|(_, row)| row.key.to_string()).collect()
}

#[test]
fn answers_are_kept_up_to_so_many_bytes_of_each_principal() {
    let mut state = State::new();
    run(&mut state, "bob", "small", network("blue")).unwrap();
    for key in ["one", "two"] {
        run(&mut state, "alice", key, large()).unwrap();
    }
    let usage = state.replay_usage_of("alice");
    assert!(usage.keys == 2 && usage.bytes > 12_000_000, "{usage:?}");
    // One more would be too much: the oldest of the same principal goes, and as many more as it takes.
    run(&mut state, "alice", "small", network("blue")).unwrap();
    assert_eq!(kept(&state, "alice"), ["one", "two", "small"]);
    run(&mut state, "alice", "three", large()).unwrap();
    assert_eq!(kept(&state, "alice"), ["two", "small", "three"]);
    assert!(state.replay_usage_of("alice").bytes <= REPLAY_BYTES_PER_PRINCIPAL_MAX as u64);
    assert_eq!(kept(&state, "bob"), ["small"]);
    // A state made of the same rows counts the same, and what has expired counts no more.
    let mut rebuilt = State::from_rows(state.rows()).unwrap();
    assert_eq!(
        (rebuilt.replay_usage_of("alice"), rebuilt.replay_usage()),
        (state.replay_usage_of("alice"), state.replay_usage())
    );
    let later = At { log_time_ms: 2 + IDEMPOTENCY_TTL_MS, wall_ms: 1, leadership: 0 };
    let origin = Origin { via: Via::Task, ..origin("task") };
    apply(&mut rebuilt, later, &Command { origin, terms: admin(), action: Action::Expire }).0.unwrap();
    assert_eq!((rebuilt.replay_usage(), rebuilt.replay_usage_of("alice")), Default::default());
}

#[test]
fn above_the_total_limit_the_largest_principal_loses_its_oldest_response() {
    let mut state = State::new();
    run(&mut state, "small", "first", network("blue")).unwrap();
    let large = large();
    let mut principals = 0;
    while state.replay_usage().bytes + 13_000_000 <= REPLAY_BYTES_MAX as u64 {
        let principal = format!("p{principals}");
        for key in ["one", "two"] {
            run(&mut state, &principal, key, large.clone()).unwrap();
        }
        principals += 1;
    }
    // Two more are too much in all, and p4 has the most: those two and a small one.
    run(&mut state, "p4", "three", network("blue")).unwrap();
    assert_eq!(kept(&state, "p4"), ["one", "two", "three"]);
    let before = state.replays.len();
    for principal in ["late", "later"] {
        run(&mut state, principal, "one", large.clone()).unwrap();
    }
    assert_eq!(kept(&state, "p4"), ["two", "three"]);
    assert!(state.replay_usage().bytes <= REPLAY_BYTES_MAX as u64);
    assert!(state.replays.len() < before + 2);
    // The small ones keep what they have, though it is the oldest.
    assert_eq!(kept(&state, "small"), ["first"]);
    assert_eq!(kept(&state, "later"), ["one"]);
    let rebuilt = State::from_rows(state.rows()).unwrap();
    assert_eq!(rebuilt.replay_usage(), state.replay_usage());
    assert_eq!(state.index_differences(&rebuilt), [""; 0]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn whatever_is_repeated_under_its_key_changes_nothing(seeds in prop::collection::vec(any::<u64>(), 1..80)) {
        let mut state = State::new();
        let (mut issued, mut asked) = (Vec::new(), Vec::new());
        let mut sent: Vec<(Command, Outcome)> = Vec::new();
        for (index, seed) in (0..).zip(seeds) {
            let now = state.log_time_ms();
            let at = At { log_time_ms: now + seed % 50, wall_ms: now, leadership: 0 };
            let mut draw =
                Draw { dice: Dice(seed), state: &state, issued: &issued, asked: &asked, index };
            let mut command = draw.command(now);
            command.origin.not_after_ms = None;
            let key = Idempotency { key: Text::given(format!("key-{index}")), request: u128::from(seed) };
            command.terms = Terms { idempotency: Some(key), ..command.terms };
            let (outcome, _) = apply(&mut state, at, &command);
            if let Ok(Applied { answer: Answer::Allocated { interfaces, .. }, .. }) = &outcome {
                issued.extend(interfaces.iter().flat_map(|one| &one.addresses).map(|given| given.allocation.get()));
            }
            if let Action::Allocate(request) | Action::AllocateOnLinks(OnLinks(request)) = &command.action {
                asked.push(request.clone());
            }
            // That is not kept: who merges a change may merge it again.
            if !outcome.as_ref().is_err_and(|refusal| refusal.code() == Code::RevisionMismatch) {
                sent.push((command, outcome));
            }
            if sent.is_empty() {
                continue;
            }
            let (command, first) = &sent[usize::try_from(seed).unwrap_or(0) % sent.len()];
            let before = state.digest();
            // In the same moment, so that nothing else ends meanwhile.
            let (again, events) = apply(&mut state, at, command);
            prop_assert!(events.is_empty());
            prop_assert_eq!(state.digest(), before);
            match (first, &again) {
                (Ok(first), Ok(again)) => {
                    prop_assert!(again.replayed);
                    prop_assert_eq!((first.revision, &first.answer), (again.revision, &again.answer));
                }
                (Err(first), Err(again)) => {
                    prop_assert!(again.replayed);
                    prop_assert_eq!((first.code(), &first.detail()), (again.code(), &again.detail()));
                }
                _ => prop_assert!(false, "{:?} became {:?}", first, again),
            }
        }
    }
}
