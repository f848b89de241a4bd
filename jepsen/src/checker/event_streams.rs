//! I16: event streams and history pages equal their part of the journal, and the journal has no gaps.
//!
//! `value.detail` of an operation `events`:
//!
//! - `from`, `to`: ids of the first and the last event that was seen, as `REVISION.NUMBER`
//! - `count`: number of events; `gaps`: number of contradictions that the reader saw itself
//! - `ids`: ids of all events, if the reader keeps them
//! - `after`: position from which the reader continued; the first event is the next one in the journal
//! - `filter`: the filter of the request; absent for all events
//! - `source`: `page` or `stream`

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::intervals::{Interval, operations};
use super::{Anomaly, Checker, Record, Verdict};
use crate::history::{Function, Type};

/// Checker of I16.
#[derive(Debug)]
pub(super) struct EventStreams;

/// Position of an event: revision and number.
type Id = (u64, u32);

/// Bits of a revision below its epoch.
const EPOCH_SHIFT: u32 = 40;

impl Checker for EventStreams {
    fn id(&self) -> &'static str {
        "I16"
    }

    fn name(&self) -> &'static str {
        "event streams"
    }

    fn promises(&self) -> &'static [u8] {
        &[13]
    }

    fn about(&self) -> &'static str {
        "Readers of events see the journal without gaps, duplicates and disorder."
    }

    fn check(&self, record: &Record) -> Verdict {
        let mut verdict = Verdict::default();
        let journal = Journal::new(record, &mut verdict);
        let mut seen = 0_u64;
        for interval in operations(&record.history) {
            if interval.begin.f == Function::Events && interval.kind() == Type::Ok {
                seen += journal.check(&interval, &mut verdict);
            }
        }
        verdict.figure("events of the journal", journal.ids.len());
        verdict.figure("events that readers saw", seen);
        verdict
    }
}

/// Ids of the journal in its order.
struct Journal {
    ids: Vec<Id>,
    /// Revision with which the history ends in each epoch.
    ends: Vec<u64>,
}

impl Journal {
    /// Takes the ids, and checks that they rise and that the numbers of each revision are complete.
    fn new(record: &Record, verdict: &mut Verdict) -> Self {
        let mut last: Option<Id> = None;
        let mut ends = Vec::new();
        for event in &record.journal {
            verdict.checked += 1;
            let id = (event.revision, event.number);
            let fits = match last {
                // An older part may be dropped in the middle of a revision.
                None => true,
                Some((revision, number)) if revision == id.0 => Some(id.1) == number.checked_add(1),
                Some((revision, _)) => revision < id.0 && id.1 == 0,
            };
            if !fits {
                let before = last.map(shown).unwrap_or_default();
                verdict.add(Anomaly {
                    message: format!("the journal has {} directly after {before}", event.id()),
                    operations: Vec::new(),
                    events: vec![before, event.id()],
                });
            }
            if let Some((revision, _)) = last
                && revision >> EPOCH_SHIFT != id.0 >> EPOCH_SHIFT
            {
                ends.push(revision);
            }
            last = Some(id);
        }
        let mut ids: Vec<Id> = record.journal.iter().map(|event| (event.revision, event.number)).collect();
        ids.sort_unstable();
        Self { ids, ends }
    }

    /// Returns true for events that a restore undid, or that were dropped for their age.
    fn is_beyond(&self, id: Id) -> bool {
        let Some(first) = self.ids.first() else { return true };
        let of_epoch = |end: &&u64| **end >> EPOCH_SHIFT == id.0 >> EPOCH_SHIFT;
        id < *first
            || self.ends.iter().find(of_epoch).is_some_and(|end| id.0 > *end)
            // An epoch without any event that was kept.
            || self.ids.last().is_some_and(|last| {
                id.0 >> EPOCH_SHIFT < last.0 >> EPOCH_SHIFT
                    && !self.ids.iter().any(|(revision, _)| revision >> EPOCH_SHIFT == id.0 >> EPOCH_SHIFT)
            })
    }

    /// Events from the first to the last of these positions, both included.
    fn slice(&self, from: Id, to: Id) -> &[Id] {
        let (first, end) = (self.ids.partition_point(|id| *id < from), self.ids.partition_point(|id| *id <= to));
        self.ids.get(first..end).unwrap_or_default()
    }

    /// Checks what one reader saw, and returns the number of its events.
    fn check(&self, interval: &Interval<'_>, verdict: &mut Verdict) -> u64 {
        let detail = &interval.value().detail;
        let number = |name: &str| detail.get(name).and_then(Json::as_u64);
        let mut wrong = |message: String, events: Vec<String>| {
            verdict.add(Anomaly { message, operations: interval.indexes().collect(), events });
        };
        if let Some(gaps) = number("gaps").filter(|gaps| *gaps > 0) {
            wrong(format!("a reader of events saw {gaps} contradictions"), Vec::new());
        }
        let is_filtered = detail.get("filter").is_some_and(|filter| !filter.is_null() && *filter != false);
        let position = |name: &str| detail.get(name).and_then(Json::as_str).and_then(parsed);
        let after = position("after");
        let count = match detail.get("ids").and_then(Json::as_array) {
            Some(ids) => {
                let ids: Vec<Id> = ids.iter().filter_map(Json::as_str).filter_map(parsed).collect();
                self.check_ids(&ids, after, is_filtered, &mut wrong);
                ids.len() as u64
            }
            None => {
                let count = number("count").unwrap_or_default();
                if let (Some(from), Some(to)) = (position("from"), position("to")) {
                    self.check_count(from, to, count, is_filtered, &mut wrong);
                }
                count
            }
        };
        verdict.checked += count;
        count
    }

    fn check_ids(
        &self,
        ids: &[Id],
        after: Option<Id>,
        is_filtered: bool,
        wrong: &mut impl FnMut(String, Vec<String>),
    ) {
        if let Some([one, next]) = ids.array_windows::<2>().find(|[one, next]| one >= next) {
            let kind = if one == next { "twice" } else { "in disorder" };
            let message = format!("a reader saw events {kind}: {} then {}", shown(*one), shown(*next));
            wrong(message, vec![shown(*one), shown(*next)]);
            return;
        }
        let known: Vec<Id> = ids.iter().copied().filter(|id| !self.is_beyond(*id)).collect();
        let (Some(first), Some(last)) = (known.first(), known.last()) else { return };
        let own: BTreeSet<Id> = known.iter().copied().collect();
        if let Some(id) = known.iter().find(|id| self.ids.binary_search(id).is_err()) {
            wrong(format!("a reader saw event {}, and the journal lacks it", shown(*id)), vec![shown(*id)]);
        }
        if is_filtered {
            return;
        }
        // From the position on, all events up to the last one belong to the reader.
        let from = after.filter(|after| !self.is_beyond(*after)).map_or(*first, |(revision, number)| {
            (revision, number.saturating_add(1))
        });
        if let Some(id) = self.slice(from, *last).iter().find(|id| !own.contains(id)) {
            let message = format!(
                "a reader missed event {} between {} and {}",
                shown(*id),
                shown(from),
                shown(*last)
            );
            wrong(message, vec![shown(*id)]);
        }
    }

    /// Compares a number of events with that of the journal. `from` may be the first event or the position
    /// before it.
    fn check_count(
        &self,
        from: Id,
        to: Id,
        count: u64,
        is_filtered: bool,
        wrong: &mut impl FnMut(String, Vec<String>),
    ) {
        if self.is_beyond(from) || self.is_beyond(to) {
            return;
        }
        let own = self.slice(from, to);
        let most = own.len() as u64;
        let least = most - u64::from(own.first() == Some(&from));
        if count > most || (count < least && !is_filtered) {
            let message = format!(
                "a reader saw {count} events from {} to {}, and the journal has {most}",
                shown(from),
                shown(to)
            );
            wrong(message, vec![shown(from), shown(to)]);
        }
    }
}

fn shown((revision, number): Id) -> String {
    format!("{revision}.{number}")
}

fn parsed(id: &str) -> Option<Id> {
    let (revision, number) = id.split_once('.')?;
    Some((revision.parse().ok()?, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::checker::fixtures::{Script, event};
    use crate::history::Value;

    const JOURNAL: [Id; 6] = [(3, 0), (4, 0), (4, 1), (7, 0), (9, 0), (9, 1)];

    fn check_journal(journal: &[Id], details: &[Json]) -> Verdict {
        let mut script = Script::default();
        for detail in details {
            let value = Value { detail: detail.clone(), ..Value::default() };
            script.ok(1, Function::Events, Value::default(), value);
        }
        let journal = journal.iter().map(|(at, number)| event(*at, *number, "pool.created", None)).collect();
        EventStreams.check(&Record { history: script.history(), journal, ..Record::default() })
    }

    fn violations(detail: Json) -> u64 {
        check_journal(&JOURNAL, &[detail]).violations
    }

    #[test]
    fn a_reader_sees_all_events_between_its_first_and_its_last() {
        assert_eq!(violations(json!({ "ids": ["4.0", "4.1", "7.0"], "gaps": 0 })), 0);
        assert_eq!(violations(json!({ "ids": ["4.0", "7.0"] })), 1);
        assert_eq!(violations(json!({ "ids": ["4.0", "7.0"], "filter": "pool=p" })), 0);
        assert_eq!(violations(json!({ "ids": ["4.1", "4.1"] })), 1);
        assert_eq!(violations(json!({ "ids": ["7.0", "4.1"] })), 1);
        assert_eq!(violations(json!({ "ids": ["4.1", "5.0", "7.0"] })), 1);
        assert_eq!(violations(json!({ "ids": ["7.0"], "after": "4.1" })), 0);
        assert_eq!(violations(json!({ "ids": ["7.0"], "after": "3.0" })), 1);
        assert_eq!(violations(json!({ "ids": [], "gaps": 2 })), 1);
    }

    #[test]
    fn a_number_of_events_is_compared_with_the_journal() {
        assert_eq!(violations(json!({ "from": "4.0", "to": "9.0", "count": 4, "gaps": 0 })), 0);
        // The position before the first event.
        assert_eq!(violations(json!({ "from": "4.0", "to": "9.0", "count": 3, "gaps": 0 })), 0);
        assert_eq!(violations(json!({ "from": "4.0", "to": "9.0", "count": 2, "gaps": 0 })), 1);
        assert_eq!(violations(json!({ "from": "4.0", "to": "9.0", "count": 5, "gaps": 0 })), 1);
    }

    #[test]
    fn the_journal_has_all_numbers_of_each_revision() {
        assert!(check_journal(&JOURNAL, &[]).holds());
        assert_eq!(check_journal(&[(3, 0), (4, 1)], &[]).violations, 1);
        assert_eq!(check_journal(&[(3, 0), (3, 2)], &[]).violations, 1);
        assert_eq!(check_journal(&[(4, 0), (3, 0)], &[]).violations, 1);
    }

    #[test]
    fn events_that_a_restore_undid_are_no_violation() {
        let epoch = 1 << EPOCH_SHIFT;
        let journal = [(3, 0), (4, 0), (epoch + 5, 0)];
        let seen = json!({ "ids": ["4.0", "6.0", format!("{}.0", epoch + 5)] });
        assert!(check_journal(&journal, &[seen]).holds());
    }
}
