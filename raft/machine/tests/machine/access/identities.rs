//! Requests that the state knows again, and those that it doesn't.

use ipam_machine::{Action, Answer, Command};

use crate::access::prefixes::from_pool;
use crate::access::world::{World, add, admin, del, hold, ids};
use crate::support::samples;

#[test]
fn every_action_says_whether_the_state_knows_it_again() {
    let with_key = |action: Action| samples::command(action);
    let without = |action: Action| {
        let mut command: Command = with_key(action);
        command.terms.idempotency = None;
        command
    };
    let actions = samples::actions();
    assert!(actions.iter().all(|(_, action)| with_key(action.clone()).has_replicated_identity()));
    let known = actions.into_iter().filter(|(_, action)| without(action.clone()).has_replicated_identity());
    let known: Vec<&str> = known.map(|(name, _)| name).collect();
    let kinds = ["allocate", "release-attachment", "join", "join-member", "delegate", "delegate-or-wait"];
    assert_eq!(
        known,
        [&kinds[..], &["renew-token", "release-attachment-of", "allocate-on-links", "allocate-many"]]
            .concat()
    );
}

#[test]
fn a_recognised_repetition_changes_nothing() {
    let mut world = World::new();
    let attached = Action::Allocate(add("n1", "pod/default/a", "web"));
    let held = Action::Allocate(hold(None, "host/a", "db"));
    for action in [attached.clone(), held, from_pool("owner", 31)] {
        let first = world.run(admin(), action.clone());
        let before = world.state.digest();
        let again = world.run(admin(), action);
        assert_eq!(world.state.digest(), before);
        match (&first.as_ref().unwrap().answer, &again.as_ref().unwrap().answer) {
            (Answer::Delegated { prefixes: one, .. }, Answer::Delegated { prefixes: other, .. }) => {
                assert_eq!(one, other);
            }
            _ => assert_eq!(ids(&first), ids(&again)),
        }
    }
    world.run(admin(), del("n1", "a")).unwrap();
    let before = world.state.digest();
    world.run(admin(), del("n1", "a")).unwrap();
    assert_eq!(world.state.digest(), before);
    // The copy of the ADD that comes last of all.
    world.run(admin(), attached).unwrap_err();
    assert_eq!(world.state.digest(), before);
}
