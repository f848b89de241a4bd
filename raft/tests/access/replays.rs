//! The same request under the same key gives the same answer and changes nothing.

use ipam_api::Code;
use ipam_api::limits::{IDEMPOTENCY_KEYS_PER_PRINCIPAL_MAX, IDEMPOTENCY_TTL_MS};
use ipam_raft::machine::command::Idempotency;
use ipam_raft::machine::command::Text;
use ipam_raft::machine::{Action, Answer, Applied, At, Command, State, Terms, apply};
use proptest::prelude::*;

use crate::random::{Dice, Draw};
use crate::world::{World, admin, hold, network, pool, under_key};

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
    world.run(admin(), pool("new", "lan", "10.0.0.50", crate::world::labelled(&[]))).unwrap();
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
fn who_may_not_ask_and_what_comes_late_is_not_kept() {
    let mut world = World::new();
    let late = |not_after_ms| {
        let terms = under_key(admin(), "key", 7);
        let mut command = Command {
            origin: ipam_raft::machine::Origin {
                principal: Text::given("alice"),
                via: ipam_raft::machine::command::Via::Http,
                request_id: Text::given("request"),
                comment: None,
                not_after_ms: None,
            },
            terms,
            action: network("blue"),
        };
        command.origin.not_after_ms = not_after_ms;
        command
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
        let at = At { log_time_ms: 1, wall_ms: 1, term: 1 };
        let origin = ipam_raft::machine::Origin {
            principal: Text::given(principal),
            via: ipam_raft::machine::command::Via::Http,
            request_id: Text::given("request"),
            comment: None,
            not_after_ms: None,
        };
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
    assert!(run(&mut state, "bob", 0), "nobody forgets for another's sake");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn whatever_is_repeated_under_its_key_changes_nothing(seeds in prop::collection::vec(any::<u64>(), 1..80)) {
        let mut state = State::new();
        let (mut issued, mut asked) = (Vec::new(), Vec::new());
        let mut sent: Vec<(Command, ipam_raft::machine::Outcome)> = Vec::new();
        for (index, seed) in (0..).zip(seeds) {
            let now = state.log_time_ms();
            let at = At { log_time_ms: now + seed % 50, wall_ms: now, term: 1 };
            let mut draw =
                Draw { dice: Dice(seed), state: &state, issued: &issued, asked: &asked, index };
            let mut command = draw.command(now);
            command.origin.not_after_ms = None;
            let key = Idempotency { key: Text::given(format!("key-{index}")), request: u128::from(seed) };
            command.terms = Terms { idempotency: Some(key), ..command.terms };
            let (outcome, _) = apply(&mut state, at, &command);
            if let Ok(Applied { answer: Answer::Allocated { interfaces, .. }, .. }) = &outcome {
                issued.extend(interfaces.iter().flat_map(|one| &one.addresses).map(|given| given.allocation));
            }
            if let Action::Allocate(wish) = &command.action {
                asked.push(wish.clone());
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
