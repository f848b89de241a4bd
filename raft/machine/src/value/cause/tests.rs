//! Order of causes, and independence of stored bytes from their wording.

use std::fmt::Write as _;
use std::path::Path;

use super::*;
use crate::command::{Put, SplitPool, Transaction};
use crate::dispatch::apply;
use crate::fixtures;
use crate::testing::TestOption;
use crate::value::{At, Expect, Idempotency, Text};
use crate::{Action, Command, State};

/// `UPDATE=1` writes the declared causes. New ones are appended, and none changes its fields.
#[test]
fn causes_are_only_ever_appended() {
    let mut listed = String::new();
    for (index, (name, fields, code, sentence)) in Cause::DECLARED.iter().enumerate() {
        let line = format!("{index} {name} {{ {fields} }} {code}: {sentence}");
        let words: Vec<&str> = line.split_whitespace().collect();
        writeln!(listed, "{}", words.join(" ")).unwrap();
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/causes.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &listed).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap();
    for (now, then) in listed.lines().zip(kept.lines()) {
        assert_eq!(now, then, "UPDATE=1 accepts other words; the order and the fields are a format");
    }
    assert_eq!(listed, kept, "UPDATE=1 adds what is new");
}

fn command(number: usize, action: Action) -> Command {
    let mut command = fixtures::command(action);
    let key = Text::given(format!("key-{number}"));
    command.terms.idempotency = Some(Idempotency { key, request: number as u128 });
    command
}

/// Refused, kept and repeated, alone and within a transaction: the state and what is answered.
fn run() -> (u128, Vec<u8>, Vec<String>) {
    let nothing = |name: &str| SplitPool {
        name: name.parse().unwrap(),
        into: "other".parse().unwrap(),
        ranges: vec!["10.0.0.1-10.0.0.9".parse().unwrap()],
        expect: Expect::Anything,
    };
    let actions = [
        Action::SplitPool(nothing("web")),
        Action::ReleaseAllocation { id: 7.into() },
        Action::RaiseLevel { level: 40 },
        Action::Transaction(Transaction {
            preconditions: Vec::new(),
            steps: vec![Action::Expire, Action::SplitPool(nothing("lan"))],
        }),
        Action::PutNetwork(Put { spec: fixtures::network("lab"), expect: Expect::Revision(9) }),
    ];
    let mut state = State::new();
    let (mut answers, mut said) = (Vec::new(), Vec::new());
    for (number, action) in actions.iter().enumerate().chain(actions.iter().enumerate()) {
        let (outcome, _) = apply(&mut state, At::default(), &command(number, action.clone()));
        answers.extend(postcard::to_stdvec(&outcome).unwrap());
        said.push(outcome.unwrap_err().detail());
    }
    (state.digest(), answers, said)
}

/// The wording is that of the process, so the other tests run in a process of their own.
#[test]
fn other_sentences_make_no_other_state() {
    let (digest, answers, said) = run();
    TestOption::RewordSentences.turn_on();
    let (digest_reworded, answers_reworded, said_otherwise) = run();
    assert_eq!((digest, answers), (digest_reworded, answers_reworded));
    for (one, other) in said.iter().zip(&said_otherwise) {
        assert_ne!(one, other);
    }
}
