//! Entries of the log, parts of the state, and the effect of commands on it.

use std::sync::LazyLock;

use ipam_machine::batch::{Batch, Opened};
use ipam_machine::journal::Frame;
use ipam_machine::model::Replay;
use ipam_machine::table::Row as _;
use ipam_machine::{Action, At, Command, Event, Outcome, RowKey, State, carry_out};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::parts::{choice, rows as divided};

/// One row of every table, as recorded by the tests of the machine.
const GOLDEN: &str = include_str!("../../../raft/machine/testdata/golden.txt");

/// Commands of one input that are carried out.
const COMMANDS_MAX: usize = 64;

static STATES: LazyLock<[State; 2]> =
    LazyLock::new(|| [State::new(), State::from_rows(golden_rows()).unwrap_or_default()]);

fn golden_rows() -> Vec<(RowKey, Vec<u8>)> {
    golden("row/")
        .filter_map(|(name, bytes)| {
            let (table, id) = name.split_once('/')?;
            Some((RowKey { table: table.parse().ok()?, id: id.parse().ok()? }, bytes))
        })
        .collect()
}

/// Golden bytes whose names start with `beginning`.
fn golden(beginning: &'static str) -> impl Iterator<Item = (&'static str, Vec<u8>)> {
    GOLDEN.lines().filter_map(move |line| {
        let (name, hex) = line.strip_prefix(beginning)?.split_once(' ')?;
        let bytes = hex.as_bytes().chunks(2).filter_map(|pair| std::str::from_utf8(pair).ok());
        Some((name, bytes.filter_map(|pair| u8::from_str_radix(pair, 16).ok()).collect()))
    })
}

/// Contents of a log entry; also outcomes and events.
pub(crate) fn batch(data: &[u8]) {
    let (kind, data) = choice(data);
    match kind % 4 {
        0 => {
            let Some(batch) = batch_of(data) else { return };
            let Ok(opened) = batch.open() else { return };
            let again = Batch::seal(&opened);
            assert!(
                again.as_ref().is_ok_and(|again| again.size() <= batch.size()),
                "it grows when it is passed on"
            );
            assert_eq!(again.and_then(|again| again.open()).ok(), Some(opened));
        }
        1 => again::<Outcome>(data),
        2 => again::<Event>(data),
        _ => {
            if let Some(frame) = Frame::decode(data) {
                let _ = frame.first();
                let _ = frame.into_events();
            }
        }
    }
}

fn batch_of(bytes: &[u8]) -> Option<Batch> {
    postcard::from_bytes(&postcard::to_stdvec(bytes).ok()?).ok()
}

fn again<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(data: &[u8]) {
    if let Ok(value) = postcard::from_bytes::<T>(data) {
        let bytes = postcard::to_stdvec(&value).unwrap_or_default();
        assert_eq!(postcard::from_bytes(&bytes), Ok(value));
    }
}

/// Batches, one after the other, applied to a small state.
pub(crate) fn apply(data: &[u8]) {
    let (which, mut data) = choice(data);
    let Some(state) = STATES.get(usize::from(which % 2)) else { return };
    let mut state = state.clone();
    let mut left = COMMANDS_MAX;
    while let Ok((opened, rest)) = postcard::take_from_bytes::<Opened>(data) {
        let at = At { log_time_ms: opened.log_time_ms, wall_ms: opened.wall_ms, leadership: 0 };
        for command in opened.commands.iter().take(left) {
            carry(&mut state, at, command);
        }
        left = left.saturating_sub(opened.commands.len());
        data = rest;
        if left == 0 || data.is_empty() {
            break;
        }
    }
    rebuilt(&state);
}

fn carry(state: &mut State, at: At, command: &Command) {
    let mut before = state.clone();
    let (outcome, _) = carry_out(state, at, command);
    if outcome.is_ok() {
        return;
    }
    // Any command also does the work that is due, and journals it in the name of the caller.
    let mut idle = command.clone();
    idle.action = Action::Expire;
    idle.origin.not_after_ms = Some(0);
    let _ = carry_out(&mut before, at, &idle);
    assert_eq!(seen(state), seen(&before), "a refused command has changed something: {outcome:?}");
}

/// All rows except the answers that are stored for repeated requests.
fn seen(state: &State) -> Vec<(RowKey, Vec<u8>)> {
    let kept = |key: &RowKey| key.table == Replay::TABLE || key.table == 0;
    let header = (RowKey { table: 0, id: 0 }, state.header().journal.open.chain.to_vec());
    state.rows().filter(|(key, _)| !kept(key)).chain([header]).collect()
}

/// Reads arbitrary rows: the result is an error, or a state that is consistent with them.
pub(crate) fn rows(data: &[u8]) {
    let Ok(mut state) = State::from_rows(divided(data)) else { return };
    rebuilt(&state);
    let Some(small) = STATES.get(1) else { return };
    // No caller is involved; time passes as usual.
    let at = At {
        log_time_ms: small.log_time_ms().saturating_add(1 << 40),
        wall_ms: 1,
        leadership: state.leadership(),
    };
    for (_, bytes) in golden("batch/") {
        for command in
            batch_of(&bytes).and_then(|batch| batch.open().ok()).iter().flat_map(|opened| &opened.commands)
        {
            let _ = carry_out(&mut state, at, command);
        }
    }
    assert!(State::from_rows(state.rows()).is_ok_and(|again| again.digest() == state.digest()));
}

/// Checks that the rows of a state rebuild the same state.
fn rebuilt(state: &State) {
    let again = State::from_rows(state.rows());
    assert!(again.is_ok(), "its rows are no state: {again:?}");
    let Ok(again) = again else { return };
    assert_eq!(again.digest(), state.digest(), "its rows are another state");
    assert!(again.rows().eq(state.rows()));
    assert_eq!(again.next_expiry_ms(), state.next_expiry_ms());
}
