//! Revisions are raised per command, not per log entry: what shares an entry shares no ETag.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "these are tests")]

use ipam_api::Code;
use ipam_machine::command::{Expect, Idempotency, Metadata, NetworkSpec, Put, Text};
use ipam_machine::{Action, Answer, At, Command, Outcome, State, apply, fixtures};

/// The point in time that all commands of one entry share.
const ENTRY: At = At { log_time_ms: 1, wall_ms: 1, leadership: 0 };

fn put(description: &str, expect: Expect, key: Option<&str>) -> Command {
    let metadata = Metadata { description: Text::given(description), ..Metadata::default() };
    let spec = NetworkSpec { metadata, ..fixtures::network("lab") };
    let mut command = fixtures::command(Action::PutNetwork(Put { spec, expect }));
    command.terms.idempotency = key.map(|key| Idempotency { key: Text::given(key), request: 7 });
    command
}

fn revision(outcome: Outcome) -> u64 {
    match outcome.unwrap().answer {
        Answer::Stored { revision, .. } => revision,
        other => panic!("{other:?}"),
    }
}

#[test]
fn two_changes_of_one_entry_have_two_revisions_and_the_first_is_no_etag_any_more() {
    let mut state = State::new();
    let first = revision(apply(&mut state, ENTRY, &put("one", Expect::Anything, None)).0);
    let second = revision(apply(&mut state, ENTRY, &put("two", Expect::Anything, None)).0);
    assert!(first < second);
    let refused = apply(&mut state, ENTRY, &put("three", Expect::Revision(first), None)).0.unwrap_err();
    assert_eq!(refused.code(), Code::RevisionMismatch);
    let third = revision(apply(&mut state, ENTRY, &put("three", Expect::Revision(second), None)).0);
    assert!(second < third);
}

/// A client that merges a change with the current resource may retry it under the same key.
#[test]
fn a_conflict_is_not_kept_under_a_key() {
    let mut state = State::new();
    let first = revision(apply(&mut state, ENTRY, &put("one", Expect::Anything, None)).0);
    let second = revision(apply(&mut state, ENTRY, &put("two", Expect::Anything, None)).0);
    apply(&mut state, ENTRY, &put("mine", Expect::Revision(first), Some("k"))).0.unwrap_err();
    let mine = apply(&mut state, ENTRY, &put("mine", Expect::Revision(second), Some("k"))).0.unwrap();
    assert!(!mine.replayed);
    let again = apply(&mut state, ENTRY, &put("mine", Expect::Revision(second), Some("k"))).0.unwrap();
    assert!(again.replayed && again.answer == mine.answer);
}
