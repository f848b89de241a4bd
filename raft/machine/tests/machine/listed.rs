//! Bounds of lists of prefixes.

use crate::support::script::{self, Line};
use ipam_api::Code;
use ipam_api::limits::{EXPIRIES_PER_COMMAND_MAX, PREFIXES_LISTED_MAX, PREFIXES_UNLISTED_MAX};
use ipam_machine::command::{Cause, Delegate, PrefixLevel, PrefixSource, SetPrefixes};
use ipam_machine::{Action, Answer, At, Outcome, State, apply};
use std::collections::VecDeque;
use std::ops::Range;

fn state(commands: &[&str]) -> State {
    let mut state = State::new();
    for line in commands {
        let Line::Propose(command) = script::read(line, &mut VecDeque::new()) else { panic!("{line}") };
        apply(&mut state, At::default(), &command).0.unwrap();
    }
    state
}

fn run(state: &mut State, action: Action) -> Outcome {
    apply(state, At::default(), &script::command(action, None)).0
}

fn level(owner: usize, length: u8) -> PrefixLevel {
    let owner = format!("o{owner}").parse().unwrap();
    PrefixLevel { owner, length: Some(length), keep_edges: false, ttl_ms: None }
}

fn lan() -> PrefixSource {
    PrefixSource::Pool("lan".parse().unwrap())
}

fn list(realm: &str, owners: Range<usize>) -> Action {
    let (from, realm) = (lan(), realm.parse().unwrap());
    Action::SetPrefixes(SetPrefixes { from, realm, prefixes: owners.map(|owner| level(owner, 32)).collect() })
}

#[track_caller]
fn limited(outcome: &Outcome) {
    assert_eq!(outcome.as_ref().unwrap_err().code(), Code::LimitExceeded);
}

/// Prefixes of other realms beside them cost nothing.
#[test]
fn a_list_has_a_bounded_length_and_ends_a_bounded_number() {
    let mut state = state(&["put subnet lan cidr=10.0.0.0/16", "put pool lan subnet=lan"]);
    let full = PREFIXES_LISTED_MAX;
    limited(&run(&mut state, list("default", 0..full + 1)));
    run(&mut state, list("default", 0..full)).unwrap();
    // All that a list may hold and all that it may end, at once.
    match run(&mut state, list("default", full..2 * full)).unwrap().answer {
        Answer::PrefixesSet { prefixes, released, ending } => {
            assert_eq!((prefixes.len(), released.len(), ending), (full, PREFIXES_UNLISTED_MAX, true));
        }
        other => panic!("{other:?}"),
    }
    run(&mut state, list("prod", 0..full)).unwrap();
    for owner in [full, full + 1] {
        let levels = vec![level(owner, 32)];
        let request = Delegate { from: lan(), realm: "prod".parse().unwrap(), levels };
        run(&mut state, Action::DelegateOrWait(request)).unwrap();
    }
    // One more than it may end, whether it lists any or none.
    for owners in [0..0, 0..1, 2 * full..3 * full] {
        // What earlier lists ended is being cleared away.
        let lasting = |state: &State| state.prefixes.iter().filter(|(_, row)| !row.released).count();
        let before = lasting(&state);
        let refused = run(&mut state, list("prod", owners));
        limited(&refused);
        assert_eq!(*refused.unwrap_err().cause, Cause::TooManyUnlisted);
        assert_eq!(lasting(&state), before);
    }
    run(&mut state, list("prod", 0..2)).unwrap();
    match run(&mut state, list("prod", 0..0)).unwrap().answer {
        Answer::PrefixesSet { prefixes, released, ending } => {
            assert_eq!((prefixes.len(), released.len(), ending), (0, 2, true));
        }
        other => panic!("{other:?}"),
    }
    for _ in 0..2 * full / EXPIRIES_PER_COMMAND_MAX + 1 {
        run(&mut state, Action::Expire).unwrap();
    }
    assert_eq!(state.prefixes.len(), full, "those of the other realm");
    let revision = state.revision();
    match run(&mut state, list("default", full..2 * full)).unwrap().answer {
        Answer::PrefixesSet { released, ending, .. } => assert!(released.is_empty() && !ending),
        other => panic!("{other:?}"),
    }
    assert_eq!(state.revision(), revision, "a repetition writes nothing");
}

/// The command that is refused for its work examines no more than the budget.
#[test]
fn other_realms_are_not_examined() {
    let mut state = state(&["put subnet lan cidr=10.0.0.0/16", "put pool lan subnet=lan"]);
    for realm in 0..8 {
        run(&mut state, list(&format!("r{realm}"), 0..PREFIXES_LISTED_MAX)).unwrap();
    }
    run(&mut state, list("r3", 0..1)).unwrap();
    run(&mut state, list("r9", 0..1)).unwrap();
}

#[test]
fn rows_that_are_being_cleared_away_count_as_work() {
    let mut state = state(&["put subnet lan cidr=10.0.0.0/16", "put pool lan subnet=lan"]);
    let full = PREFIXES_LISTED_MAX;
    // Each ends all prefixes of the one before it, and clears a few.
    let lists = (0..8).map(|number| list("default", number * full..(number + 1) * full));
    let refused = lists.map(|list| run(&mut state, list)).find_map(Result::err);
    assert_eq!(*refused.unwrap().cause, Cause::TooMuchWork);
}

#[test]
fn a_list_whose_response_is_too_large_is_refused_and_changes_nothing() {
    let mut state = state(&["put subnet lan cidr=2001:db8::/32", "put pool lan subnet=lan"]);
    let mut from = lan();
    for length in 40..80 {
        let owner = format!("{}{length}", "o".repeat(240)).parse().unwrap();
        let levels = vec![PrefixLevel { owner, ..level(0, length) }];
        let request = Delegate { from, realm: "default".parse().unwrap(), levels };
        let given = run(&mut state, Action::Delegate(request)).unwrap().answer;
        let Answer::Delegated { prefixes, .. } = given else { panic!("{given:?}") };
        from = PrefixSource::Prefix(prefixes[0].id);
    }
    let list = |count: usize| {
        let (from, prefixes) = (from.clone(), (0..count).map(|owner| level(owner, 128)).collect());
        Action::SetPrefixes(SetPrefixes { from, realm: "default".parse().unwrap(), prefixes })
    };
    let before = state.digest();
    let refusal = run(&mut state, list(PREFIXES_LISTED_MAX)).unwrap_err();
    assert!(matches!(*refusal.cause, Cause::PrefixListSize { .. }), "{refusal:?}");
    assert_eq!(state.digest(), before);
    run(&mut state, list(PREFIXES_LISTED_MAX / 2)).unwrap();
}
