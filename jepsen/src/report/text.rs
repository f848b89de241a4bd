//! Summary of one run as text, for the terminal.

use super::availability::AvailabilityRow;
use super::results::{Results, Validity};
use super::words::{columns, counted, microseconds, milliseconds, percent, thousands};

/// Maximum number of operations that are named with one violation.
const OPERATIONS_MAX: usize = 8;
/// Maximum number of violations of one checker in the summary; the page shows all stored violations.
const ANOMALIES_MAX: usize = 3;

/// Returns the summary of a run.
#[must_use]
pub fn text(results: &Results) -> String {
    let mut parts = vec![head(results), checkers(results), promises(results)];
    if !results.availability.is_empty() {
        parts.push(columns(&AVAILABILITY, &availability_rows(&results.availability)));
    }
    if !results.latencies.is_empty() {
        parts.push(latencies(results));
    }
    parts.extend(Some(problems(results)).filter(|problems| !problems.is_empty()));
    parts.push(format!("repeat: {}\n", results.command()));
    parts.join("\n")
}

fn head(results: &Results) -> String {
    let [ok, fail, info] = results.ends();
    let settings = &results.settings;
    let verdict = match results.valid {
        Validity::Yes => "VALID: no violation".to_owned(),
        Validity::Unknown => "UNDECIDED: no violation, but the run did too little".to_owned(),
        Validity::No => format!("VIOLATED: {}", counted(results.violations, "violation")),
    };
    format!(
        "{verdict}\n{} members{}, {} workloads, {} nemeses, {}, seed {}, {} % idle\n\
         operations: {} ok, {} fail, {} info; {} events\n\
         faults: {}, power cuts: {}, changes of the leader: {}, panics: {}, leaks: {}\n",
        settings.members,
        if settings.is_secure { " with TLS" } else { "" },
        settings.workloads.len(),
        settings.nemeses.len(),
        milliseconds(results.duration_ms),
        settings.seed,
        settings.idle_percent,
        thousands(ok),
        thousands(fail),
        thousands(info),
        thousands(results.events),
        thousands(results.fault_count()),
        thousands(results.power_cuts),
        thousands(results.leader_changes),
        results.panics,
        results.leaks
    )
}

fn checkers(results: &Results) -> String {
    let row = |checked: &super::Checked| {
        let (violations, facts) = (checked.verdict.violations, checked.verdict.checked);
        vec![checked.id.clone(), checked.name.clone(), thousands(violations), thousands(facts)]
    };
    let rows: Vec<Vec<String>> = results.checkers.iter().map(row).collect();
    columns(&[("", false), ("invariant", false), ("violations", true), ("verified", true)], &rows)
}

fn promises(results: &Results) -> String {
    let row = |promise: &super::PromiseResult| {
        let verdict = promise.verdict.to_string();
        vec![promise.number.to_string(), promise.name.clone(), verdict, promise.checkers.join(" ")]
    };
    let rows: Vec<Vec<String>> = results.promises.iter().map(row).collect();
    columns(&[("", true), ("promise", false), ("verdict", false), ("invariants", false)], &rows)
}

/// Columns of the table of availability.
pub(super) const AVAILABILITY: [(&str, bool); 6] = [
    ("nemesis", false),
    ("target", false),
    ("faults", true),
    ("gap median", true),
    ("gap max", true),
    ("ok", true),
];

/// Rows of the table of availability.
pub(super) fn availability_rows(rows: &[AvailabilityRow]) -> Vec<Vec<String>> {
    let time = |time_ms: Option<u64>| time_ms.map_or_else(|| "–".to_owned(), milliseconds);
    let row = |row: &AvailabilityRow| {
        vec![
            row.nemesis.clone(),
            row.target.to_string(),
            thousands(row.faults),
            time(row.median_ms()),
            time(row.max_ms()),
            percent(row.ok, row.operations),
        ]
    };
    rows.iter().map(row).collect()
}

fn latencies(results: &Results) -> String {
    let row = |latency: &super::Latency| {
        vec![
            latency.function.to_string(),
            if latency.under_faults { "faults" } else { "calm" }.to_owned(),
            thousands(latency.count),
            microseconds(latency.p50_us),
            microseconds(latency.p90_us),
            microseconds(latency.p99_us),
            microseconds(latency.max_us),
        ]
    };
    let rows: Vec<Vec<String>> = results.latencies.iter().map(row).collect();
    let head = [
        ("function", false),
        ("under", false),
        ("ok", true),
        ("p50", true),
        ("p90", true),
        ("p99", true),
        ("max", true),
    ];
    columns(&head, &rows)
}

/// Violations, failures and shortfalls, one a line.
fn problems(results: &Results) -> String {
    let mut lines: Vec<String> = results.failures.iter().map(|failure| format!("FAILED {failure}")).collect();
    for checked in &results.checkers {
        let all = &checked.verdict.anomalies;
        for anomaly in all.iter().take(ANOMALIES_MAX) {
            let shown = anomaly.operations.iter().take(OPERATIONS_MAX).map(u64::to_string);
            let operations = shown.collect::<Vec<_>>().join(", ");
            lines.push(format!("{} {} [{operations}]", checked.id, anomaly.message));
        }
        let more = checked.verdict.violations.saturating_sub(all.len().min(ANOMALIES_MAX) as u64);
        if more > 0 {
            lines.push(format!("{} and {} more", checked.id, thousands(more)));
        }
    }
    lines.extend(results.shortfalls.iter().map(|shortfall| format!("weak: {shortfall}")));
    lines.iter().map(|line| format!("{line}\n")).collect()
}
