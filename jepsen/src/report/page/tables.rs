//! Tables of the page: promises, invariants, availability, faults, latencies, operations and settings.

use std::time::Duration;

use super::html::{Cell, table};
use crate::checker::availability::FaultGap;
use crate::report::text::{AVAILABILITY, availability_rows};
use crate::report::words::{counted, microseconds, milliseconds, thousands};
use crate::report::{Checked, PromiseVerdict, Results};

/// Maximum number of characters of the evidence of one fault.
const EVIDENCE_CHARS_MAX: usize = 300;

/// Promises with their verdicts.
pub(super) fn promises(results: &Results) -> String {
    let row = |promise: &crate::report::PromiseResult| {
        let class = match promise.verdict {
            PromiseVerdict::Kept => "good",
            PromiseVerdict::Unproven => "weak",
            PromiseVerdict::Uncovered => "none",
            PromiseVerdict::Broken => "bad",
        };
        vec![
            Cell::number(&promise.number.to_string()),
            Cell::text(&promise.name),
            Cell::verdict(&promise.verdict.to_string(), class),
            Cell::number(&thousands(promise.checked)),
            Cell::text(&promise.checkers.join(" ")),
        ]
    };
    let rows: Vec<Vec<Cell>> = results.promises.iter().map(row).collect();
    table(&[" ", "promise", "verdict", "verified ", "invariants"], &rows)
}

/// Invariants with their verdicts and figures.
pub(super) fn invariants(results: &Results) -> String {
    let row = |checked: &Checked| {
        let verdict = &checked.verdict;
        let figures =
            verdict.figures.iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>();
        let badge = match verdict.violations {
            0 if !verdict.shortfalls.is_empty() => Cell::verdict("too weak", "weak"),
            0 if verdict.checked == 0 => Cell::verdict("nothing seen", "weak"),
            0 => Cell::verdict("holds", "good"),
            count => Cell::verdict(&counted(count, "violation"), "bad"),
        };
        vec![
            Cell::text(&checked.id),
            Cell::text(&checked.about),
            badge,
            Cell::number(&thousands(verdict.checked)),
            Cell::text(&figures.join("; ")),
        ]
    };
    let rows: Vec<Vec<Cell>> = results.checkers.iter().map(row).collect();
    table(&["", "invariant", "verdict", "verified ", "figures"], &rows)
}

/// Availability by nemesis and target.
pub(super) fn availability(results: &Results) -> String {
    let rows = availability_rows(&results.availability);
    let cells = |row: Vec<String>| {
        let cell = |(text, (_, is_number)): (String, &(&str, bool))| {
            if *is_number { Cell::number(&text) } else { Cell::text(&text) }
        };
        row.into_iter().zip(&AVAILABILITY).map(cell).collect()
    };
    let rows: Vec<Vec<Cell>> = rows.into_iter().map(cells).collect();
    table(&["nemesis", "target", "faults ", "gap median ", "gap max ", "ok "], &rows)
}

/// All faults with evidence and gap.
pub(super) fn faults(gaps: &[FaultGap<'_>]) -> String {
    let seconds = |time_ns: u64| format!("{:.1} s", Duration::from_nanos(time_ns).as_secs_f64());
    let row = |gap: &FaultGap<'_>| {
        let evidence = if gap.is_refused { "refused".to_owned() } else { gap.evidence.join("; ") };
        vec![
            Cell::number(&seconds(gap.begin_ns)),
            Cell::text(&gap.fault.nemesis),
            Cell::code(&details(gap)),
            Cell::text(&gap.target.to_string()),
            Cell::number(&seconds(gap.end_ns - gap.begin_ns)),
            Cell::number(
                &gap.gap_ns.map_or_else(|| "–".to_owned(), |gap_ns| milliseconds(gap_ns / 1_000_000)),
            ),
            Cell::number(&format!("{} / {}", thousands(gap.ok), thousands(gap.operations))),
            Cell::text(&cut(&evidence, EVIDENCE_CHARS_MAX)),
        ]
    };
    let rows: Vec<Vec<Cell>> = gaps.iter().map(row).collect();
    table(&["time ", "nemesis", "fault", "target", "lasted ", "gap ", "ok ", "evidence"], &rows)
}

/// Kind of a fault and its targets in a few words.
fn details(gap: &FaultGap<'_>) -> String {
    let kind = serde_json::to_value(&gap.fault.kind).unwrap_or_default();
    let members = kind.as_object().into_iter().flatten().filter(|(name, _)| *name != "kind");
    let words = members.map(|(name, value)| format!("{name} {}", short(value)));
    let name = kind.get("kind").and_then(serde_json::Value::as_str).unwrap_or_default();
    [name.to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(", ")
}

fn short(value: &serde_json::Value) -> String {
    use serde_json::Value;
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(short).collect::<Vec<_>>().join(" "),
        Value::Object(members) => members.values().map(short).collect::<Vec<_>>().join("→"),
        other => other.to_string(),
    }
}

fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Latencies by function.
pub(super) fn latencies(results: &Results) -> String {
    let row = |latency: &crate::report::Latency| {
        vec![
            Cell::text(&latency.function.to_string()),
            Cell::text(if latency.under_faults { "faults" } else { "calm" }),
            Cell::number(&thousands(latency.count)),
            Cell::number(&microseconds(latency.p50_us)),
            Cell::number(&microseconds(latency.p90_us)),
            Cell::number(&microseconds(latency.p99_us)),
            Cell::number(&microseconds(latency.max_us)),
        ]
    };
    let rows: Vec<Vec<Cell>> = results.latencies.iter().map(row).collect();
    table(&["function", "under", "ok ", "p50 ", "p90 ", "p99 ", "max "], &rows)
}

/// Operations by workload and function.
pub(super) fn operations(results: &Results) -> String {
    let row = |count: &crate::report::OperationCount| {
        vec![
            Cell::text(&count.workload),
            Cell::text(&count.function.to_string()),
            Cell::number(&thousands(count.ok)),
            Cell::number(&thousands(count.fail)),
            Cell::number(&thousands(count.info)),
        ]
    };
    let rows: Vec<Vec<Cell>> = results.operations.iter().map(row).collect();
    table(&["workload", "function", "ok ", "fail ", "info "], &rows)
}

/// Settings of the run.
pub(super) fn settings(results: &Results) -> String {
    let settings = &results.settings;
    let none = |names: &[String]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let rows = [
        ("begin", settings.began_at.clone()),
        ("version", settings.version.clone()),
        ("seed", settings.seed.to_string()),
        ("members", settings.members.to_string()),
        ("TLS and tokens", if settings.is_secure { "yes" } else { "no" }.to_owned()),
        ("time of the work", milliseconds(settings.time_ms)),
        ("time of the run", milliseconds(results.duration_ms)),
        ("workloads", none(&settings.workloads)),
        ("nemeses", none(&settings.nemeses)),
        ("options of the test build", none(&settings.test_options)),
        ("idle CPU", format!("{} %", settings.idle_percent)),
    ];
    let rows: Vec<Vec<Cell>> =
        rows.iter().map(|(name, value)| vec![Cell::text(name), Cell::text(value)]).collect();
    table(&["setting", "value"], &rows)
}
