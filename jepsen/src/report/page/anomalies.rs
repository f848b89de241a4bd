//! Anomalies: each violation with the few operations and events that demonstrate it.

use std::time::Duration;

use super::html::{Cell, escaped, table};
use crate::checker::{Anomaly, Record};
use crate::history::{Operation, Process, Value};
use crate::report::Results;
use crate::report::words::counted;

/// Maximum number of operations of one violation.
const OPERATIONS_MAX: usize = 24;
/// Maximum number of characters of a value.
const VALUE_CHARS_MAX: usize = 600;

/// Shows all stored violations.
pub(super) fn anomalies(record: &Record, results: &Results) -> String {
    let mut html = String::new();
    for checked in results.checkers.iter().filter(|checked| !checked.verdict.holds()) {
        html.push_str(&format!(
            "<h3>{} {}: {}</h3><p>{}</p>\n",
            escaped(&checked.id),
            escaped(&checked.name),
            counted(checked.verdict.violations, "violation"),
            escaped(&checked.about)
        ));
        for anomaly in &checked.verdict.anomalies {
            html.push_str(&one(record, anomaly));
        }
    }
    html
}

fn one(record: &Record, anomaly: &Anomaly) -> String {
    let mut html = format!("<div class=\"anomaly\"><p><b>{}</b></p>\n", escaped(&anomaly.message));
    let shown = anomaly.operations.iter().take(OPERATIONS_MAX);
    let rows: Vec<Vec<Cell>> = shown.filter_map(|index| found(record, *index)).map(row).collect();
    if !rows.is_empty() {
        html.push_str(&table(&["time ", "process ", "function", "type", "value"], &rows));
    }
    let events: Vec<Vec<Cell>> = anomaly.events.iter().filter_map(|id| event_row(record, id)).collect();
    if !events.is_empty() {
        html.push_str(&table(&["event ", "type", "object", "endpoint", "reason"], &events));
    }
    html.push_str("</div>\n");
    html
}

/// Operation with an index: normally at that place of the history.
fn found(record: &Record, index: u64) -> Option<&Operation> {
    let place = usize::try_from(index).ok().and_then(|at| record.history.get(at));
    place
        .filter(|operation| operation.index == index)
        .or_else(|| record.history.iter().find(|operation| operation.index == index))
}

fn row(operation: &Operation) -> Vec<Cell> {
    let seconds = Duration::from_nanos(operation.time_ns).as_secs_f64();
    let process = match operation.process {
        Process::Client(number) => number.to_string(),
        Process::Nemesis => "nemesis".to_owned(),
    };
    vec![
        Cell::number(&format!("{seconds:.3} s")),
        Cell::number(&process),
        Cell::text(&operation.f.to_string()),
        Cell::text(&operation.kind.to_string()),
        Cell::code(&short(&operation.value)),
    ]
}

/// Value as JSON, cut if it is long.
fn short(value: &Value) -> String {
    let text = serde_json::to_string(value).unwrap_or_default();
    match text.char_indices().nth(VALUE_CHARS_MAX) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text,
    }
}

fn event_row(record: &Record, id: &str) -> Option<Vec<Cell>> {
    let event = record.journal.iter().find(|event| event.id() == id)?;
    let endpoint = event.endpoint.as_ref().map(ToString::to_string).unwrap_or_default();
    Some(vec![
        Cell::number(id),
        Cell::text(&event.event_type),
        Cell::code(&event.object),
        Cell::code(&endpoint),
        Cell::text(event.reason.as_deref().unwrap_or_default()),
    ])
}
