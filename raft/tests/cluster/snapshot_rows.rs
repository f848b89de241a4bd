//! Snapshots of states that random commands made, over all tables.

use std::collections::BTreeMap;

use ipam_machine::batch::Batch;
use ipam_machine::{At, RowKey, State, apply};
use ipam_raft::through_a_snapshot;
use proptest::prelude::*;

/// Rows and log entries of every kind, by name.
const GOLDEN: &str = include_str!("../../machine/testdata/golden.txt");

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

/// The golden bytes whose names begin with `kind`.
fn golden(kind: &str) -> impl Iterator<Item = (&'static str, Vec<u8>)> {
    let lines = GOLDEN.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let named = lines.map(|line| line.split_once(' ').unwrap());
    named.filter_map(move |(name, bytes)| Some((name.strip_prefix(kind)?, unhex(bytes))))
}

/// A state with at least one row of each table.
fn rows() -> State {
    let rows = golden("row/").map(|(name, bytes)| {
        let (table, id) = name.split_once('/').unwrap();
        (RowKey { table: table.parse().unwrap(), id: id.parse().unwrap() }, bytes)
    });
    State::from_rows(rows.collect::<Vec<_>>()).unwrap()
}

fn batches() -> Vec<Batch> {
    let batches = golden("batch/");
    batches.map(|(_, bytes)| postcard::from_bytes(&postcard::to_stdvec(&bytes).unwrap()).unwrap()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The snapshot also carries the open segment of the journal, from which the state hands over frames.
    #[test]
    fn a_snapshot_carries_every_row(
        grow_from_nothing in any::<bool>(),
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
    ) {
        let mut state = if grow_from_nothing { State::new() } else { rows() };
        // The journal of a state that rows made has a head, but no frames here.
        let mut journaled = Vec::new();
        let batches = batches();
        for (later, which) in (0..).zip(order) {
            let opened = which.get(&batches).open().unwrap();
            let at = At {
                log_time_ms: opened.log_time_ms + later,
                wall_ms: opened.wall_ms,
                leadership: state.leadership(),
            };
            for command in &opened.commands {
                let _ = apply(&mut state, at, command);
            }
            journaled.extend(state.take_journaled());
        }
        let before: BTreeMap<RowKey, Vec<u8>> = state.rows().collect();
        let sent = through_a_snapshot(&state, journaled).unwrap();
        assert_eq!(sent.digest(), state.digest());
        assert_eq!(sent.rows().collect::<BTreeMap<_, _>>(), before);
    }
}
