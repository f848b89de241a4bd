//! Counts of the effects of probes, so that a property test shows that it has met each.

use std::collections::BTreeMap;

use ipam_machine::event::{Holding, Reason};
use ipam_machine::{Event, EventKind, State};

/// Times that each effect happened.
#[derive(Debug, Default)]
pub(super) struct Probed(BTreeMap<&'static str, usize>);

const EFFECTS: [&str; 15] = [
    "quarantined",
    "confirmed",
    "ended by a node",
    "ended by an operator, a pool or an adoption",
    "adopted",
    "moved to another pool",
    "dropped by its pool",
    "replaced",
    "without another address",
    "checked",
    "given with a check",
    "heard",
    "collided",
    "silent",
    "reclaimed from a node that is gone",
];
/// An effect that takes too many steps in order for each run to meet it: `churn` and the scenarios have it.
const RARE: &str = "reclaimed from a silent node";

impl Probed {
    fn note(&mut self, effect: &'static str, times: usize) {
        assert!(effect == RARE || EFFECTS.contains(&effect));
        *self.0.entry(effect).or_default() += times;
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (effect, times) in &other.0 {
            self.note(effect, *times);
        }
    }

    pub(super) fn count(&mut self, before: &State, now: &State, events: &[Event]) {
        let given = events.iter().filter_map(|event| match &event.kind {
            EventKind::Allocated(of) => Some(of),
            _ => None,
        });
        let given: Vec<&Holding> = given.collect();
        for event in events {
            match &event.kind {
                EventKind::Quarantined { .. } => self.note("quarantined", 1),
                EventKind::QuarantineEnded { by: Some(_), .. } => self.note("ended by a node", 1),
                EventKind::QuarantineEnded { address, pool, .. } => {
                    self.note("ended by an operator, a pool or an adoption", 1);
                    let adopted = given.iter().any(|of| (of.address, &of.pool) == (*address, pool));
                    self.note("adopted", usize::from(adopted));
                    let changes = |event: &Event| match &event.kind {
                        EventKind::Changed { name, .. } | EventKind::Deleted { name, .. } => {
                            name.name().as_ref() == Some(pool)
                        }
                        _ => false,
                    };
                    self.note("dropped by its pool", usize::from(events.iter().any(changes)));
                }
                EventKind::Allocated(of) => {
                    self.note("replaced", usize::from(of.reason == Reason::Conflict));
                    let row = now.allocations.get(of.allocation);
                    self.note("given with a check", usize::from(row.is_some_and(|row| row.checked)));
                }
                EventKind::Released { of, .. } => match of.reason {
                    Reason::Conflict if given.iter().all(|other| other.reason != Reason::Conflict) => {
                        self.note("without another address", 1);
                    }
                    Reason::NodeGone => self.note("reclaimed from a node that is gone", 1),
                    Reason::NodeSilent => self.note(RARE, 1),
                    _ => {}
                },
                EventKind::Collided { .. } => self.note("collided", 1),
                _ => {}
            }
        }
        for (id, row) in now.quarantines.iter() {
            let Some(old) = before.quarantines.get(id) else { continue };
            self.note("confirmed", usize::from(row.confirmed_by.is_some() && old.confirmed_by.is_none()));
            self.note("moved to another pool", usize::from(row.pool != old.pool));
        }
        self.note("checked", now.checks.len().saturating_sub(before.checks.len()));
        self.note("heard", now.neighbors.len().saturating_sub(before.neighbors.len()));
        let silent =
            |state: &State| state.neighbors.iter().filter(|(_, row)| !row.silence.is_empty()).count();
        self.note("silent", silent(now).saturating_sub(silent(before)));
    }

    pub(super) fn check(&self) {
        for effect in EFFECTS {
            assert!(self.0.get(effect).is_some_and(|times| *times > 0), "never {effect}: {:?}", self.0);
        }
    }
}
