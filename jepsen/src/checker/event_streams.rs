//! I16: event streams and history pages equal their part of the journal, and the journal has no gaps.
//!
//! `value.detail` of an operation `events`:
//!
//! - `from`: position after which the reader began, as `REVISION.NUMBER`, or `REVISION` for the end of a
//!   revision
//! - `to`: position up to which it saw all events
//! - `ids`: ids of the events that it saw
//! - `filter`: fields and values of the request; absent for all events
//! - `gaps`: number of contradictions that the reader itself found, if it checks for them

use std::collections::BTreeSet;

use ipam_api::event::Event;
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
        verdict.figure("events of the journal", journal.events.len());
        verdict.figure("events that readers saw", seen);
        verdict
    }
}

/// Journal, ordered by position.
struct Journal<'a> {
    events: Vec<(Id, &'a Event)>,
    /// Last revision of each epoch but the present one.
    ends: Vec<u64>,
}

impl<'a> Journal<'a> {
    /// Collects the events, and checks that their positions rise and that each revision is complete.
    fn new(record: &'a Record, verdict: &mut Verdict) -> Self {
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
            if let Some(before) = last.filter(|_| !fits) {
                verdict.add(Anomaly {
                    message: format!("the journal has {} directly after {}", shown(id), shown(before)),
                    operations: Vec::new(),
                    events: vec![shown(before), shown(id)],
                });
            }
            if let Some((revision, _)) = last
                && epoch(revision) != epoch(id.0)
            {
                ends.push(revision);
            }
            last = Some(id);
        }
        let mut events: Vec<(Id, &Event)> =
            record.journal.iter().map(|event| ((event.revision, event.number), event)).collect();
        events.sort_unstable_by_key(|(id, _)| *id);
        Self { events, ends }
    }

    /// Returns true for events that a restore undid, or that were dropped for their age.
    fn is_beyond(&self, id: Id) -> bool {
        let (Some((first, _)), Some((last, _))) = (self.events.first(), self.events.last()) else {
            return true;
        };
        let is_past = epoch(id.0) < epoch(last.0);
        let end = self.ends.iter().find(|end| epoch(**end) == epoch(id.0));
        id < *first || (is_past && end.is_none_or(|end| id.0 > *end))
    }

    /// Events after a position up to another one.
    fn slice(&self, from: Id, to: Id) -> &[(Id, &'a Event)] {
        let first = self.events.partition_point(|(id, _)| *id <= from);
        let end = self.events.partition_point(|(id, _)| *id <= to);
        self.events.get(first..end).unwrap_or_default()
    }

    /// Checks what one reader saw, and returns the number of its events.
    fn check(&self, interval: &Interval<'_>, verdict: &mut Verdict) -> u64 {
        let detail = &interval.value().detail;
        let ids = detail.get("ids").and_then(Json::as_array).into_iter().flatten();
        let ids: Vec<Id> = ids.filter_map(Json::as_str).filter_map(parsed).collect();
        let gaps = detail.get("gaps").and_then(Json::as_u64).unwrap_or_default();
        let found = if gaps > 0 {
            Some((format!("a reader of events saw {gaps} contradictions"), Vec::new()))
        } else {
            self.contradiction(detail, &ids)
        };
        if let Some((message, events)) = found {
            verdict.add(Anomaly { message, operations: interval.indexes().collect(), events });
        }
        let count = ids.len() as u64;
        verdict.checked += count;
        count
    }

    /// First contradiction between a reader and the journal, with its events.
    fn contradiction(&self, detail: &Json, ids: &[Id]) -> Option<(String, Vec<String>)> {
        if let Some((one, next)) = pairs(ids).find(|(one, next)| one >= next) {
            let kind = if one == next { "twice" } else { "in disorder" };
            let message = format!("a reader saw events {kind}: {} then {}", shown(one), shown(next));
            return Some((message, vec![shown(one), shown(next)]));
        }
        let position = |name: &str| detail.get(name).and_then(Json::as_str).and_then(parsed);
        // A reader continues after a revision or after one of its events.
        let after = detail.get("after").and_then(Json::as_str);
        let after = after.and_then(|after| parsed(after).or_else(|| Some((after.parse().ok()?, u32::MAX))));
        let (from, to) = (after.or_else(|| position("from")), position("to"));
        let is_outside = |id: &&Id| from.is_some_and(|from| **id <= from) || to.is_some_and(|to| **id > to);
        if let Some(id) = ids.iter().find(is_outside) {
            let message = format!("a reader saw event {}, which is outside its part", shown(*id));
            return Some((message, vec![shown(*id)]));
        }
        let is_kept = |id: &Id| self.events.binary_search_by_key(id, |(id, _)| *id).is_ok();
        if let Some(id) = ids.iter().find(|id| !self.is_beyond(**id) && !is_kept(id)) {
            return Some((
                format!("a reader saw event {}, and the journal lacks it", shown(*id)),
                vec![shown(*id)],
            ));
        }
        // Without positions, its first and its last event limit the part of the reader.
        let from = from.or_else(|| ids.first().map(|id| before(*id)))?;
        let to = to.or_else(|| ids.last().copied())?;
        let seen: BTreeSet<Id> = ids.iter().copied().collect();
        let filter = detail.get("filter").unwrap_or(&Json::Null);
        let missed = self.slice(from, to).iter().find(|(id, event)| {
            !seen.contains(id) && !self.is_beyond(*id) && surely_matches(event, filter)
        })?;
        let id = shown(missed.0);
        Some((format!("a reader missed event {id} between {} and {}", shown(from), shown(to)), vec![id]))
    }
}

/// Returns true if an event surely matches a filter. Fields that are not known here match nothing.
fn surely_matches(event: &Event, filter: &Json) -> bool {
    let Some(fields) = filter.as_object() else { return filter.is_null() };
    fields.iter().all(|(name, value)| {
        let Some(value) = value.as_str() else { return false };
        match name.as_str() {
            "kind" => event.kind == value,
            "pool" => event.pool.as_ref().is_some_and(|pool| pool.as_str() == value),
            _ => false,
        }
    })
}

fn pairs(ids: &[Id]) -> impl Iterator<Item = (Id, Id)> {
    ids.iter().copied().zip(ids.iter().copied().skip(1))
}

fn epoch(revision: u64) -> u64 {
    revision >> EPOCH_SHIFT
}

/// Position before an event.
fn before((revision, number): Id) -> Id {
    match number.checked_sub(1) {
        Some(number) => (revision, number),
        None => (revision.saturating_sub(1), u32::MAX),
    }
}

fn shown((revision, number): Id) -> String {
    if number == u32::MAX { revision.to_string() } else { format!("{revision}.{number}") }
}

fn parsed(position: &str) -> Option<Id> {
    match position.split_once('.') {
        Some((revision, number)) => Some((revision.parse().ok()?, number.parse().ok()?)),
        None => Some((position.parse().ok()?, u32::MAX)),
    }
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
        assert_eq!(violations(json!({ "ids": ["4.1", "4.1"] })), 1);
        assert_eq!(violations(json!({ "ids": ["7.0", "4.1"] })), 1);
        assert_eq!(violations(json!({ "ids": ["4.1", "5.0", "7.0"] })), 1);
        assert_eq!(violations(json!({ "ids": [], "gaps": 2 })), 1);
    }

    #[test]
    fn a_reader_sees_all_events_between_its_positions() {
        assert_eq!(violations(json!({ "from": "4.1", "to": "7.0", "ids": ["7.0"] })), 0);
        assert_eq!(violations(json!({ "from": "4", "to": "8", "ids": ["7.0"] })), 0);
        assert_eq!(violations(json!({ "from": "3", "to": "8", "ids": ["7.0"] })), 1);
        assert_eq!(violations(json!({ "from": "4", "to": "9.0", "ids": ["7.0"] })), 1);
        assert_eq!(violations(json!({ "from": "4", "to": "9", "ids": [] })), 1);
        assert_eq!(violations(json!({ "from": "7.0", "to": "8", "ids": ["7.0"] })), 1);
    }

    #[test]
    fn filters_leave_out_only_events_of_others() {
        let seen = |field: &str, value: &str| {
            violations(json!({ "from": "4", "to": "8", "ids": [], "filter": { field: value } }))
        };
        assert_eq!(seen("kind", "address"), 1);
        assert_eq!(seen("kind", "node"), 0);
        assert_eq!(seen("endpoint", "pod/x"), 0);
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
