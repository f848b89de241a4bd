//! Aggregate of many runs as Markdown, from all results below a directory.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::availability::merged;
use super::promise::PromiseVerdict;
use super::results::{RESULTS, Results, Validity};
use super::text::{AVAILABILITY, availability_rows};
use super::words::{counted, markdown, milliseconds, thousands};

/// Maximum number of undecided runs in a list.
const UNDECIDED_MAX: usize = 20;

/// Reads the results of all runs below a directory, in the order of their paths.
///
/// # Errors
/// If a file can't be read; the error names it.
pub fn read_all(dir: &Path) -> Result<Vec<Results>> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        let entries = std::fs::read_dir(&dir).with_context(|| dir.display().to_string())?;
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                open.push(entry.path());
            } else if entry.file_name() == RESULTS {
                found.push(entry.path());
            }
        }
    }
    found.sort_unstable();
    let read = |path: &std::path::PathBuf| {
        let text = std::fs::read(path).with_context(|| path.display().to_string())?;
        serde_json::from_slice(&text).with_context(|| path.display().to_string())
    };
    found.iter().map(read).collect()
}

/// Returns totals, matrix, availability, violations and undecided runs as Markdown.
#[must_use]
pub fn aggregate(runs: &[Results]) -> String {
    let mut parts = vec![totals(runs), promises(runs), checkers(runs), matrix(runs)];
    let rows = merged(runs.iter().flat_map(|run| run.availability.iter().cloned()));
    if !rows.is_empty() {
        let table = markdown(&AVAILABILITY, &availability_rows(&rows));
        parts.push(format!(
            "### Availability\n\nThe gap is the longest time without an accepted write, from the begin of a \
             fault until the first accepted write after its healing.\n\n{table}"
        ));
    }
    parts.push(violations(runs));
    parts.extend(undecided(runs));
    parts.join("\n")
}

fn sum(runs: &[Results], of: impl Fn(&Results) -> u64) -> u64 {
    runs.iter().map(of).sum()
}

fn totals(runs: &[Results]) -> String {
    let count = |valid: Validity| runs.iter().filter(|run| run.valid == valid).count();
    let ends = |at: usize| sum(runs, |run| run.ends().get(at).copied().unwrap_or_default());
    let secure = runs.iter().filter(|run| run.settings.is_secure).count();
    let number = |number: u64| thousands(number);
    let rows = [
        ("runs", number(runs.len() as u64)),
        ("valid", number(count(Validity::Yes) as u64)),
        ("undecided", number(count(Validity::Unknown) as u64)),
        ("violated", number(count(Validity::No) as u64)),
        ("with TLS and tokens", number(secure as u64)),
        ("time", milliseconds(sum(runs, |run| run.duration_ms))),
        ("operations ok", number(ends(0))),
        ("operations fail", number(ends(1))),
        ("operations info", number(ends(2))),
        ("faults", number(sum(runs, Results::fault_count))),
        ("power cuts of members", number(sum(runs, |run| run.power_cuts))),
        ("changes of the leader", number(sum(runs, |run| run.leader_changes))),
        ("events of journals", number(sum(runs, |run| run.events))),
        ("violations", number(sum(runs, |run| run.violations))),
        ("panics", number(sum(runs, |run| run.panics))),
        ("leaks", number(sum(runs, |run| run.leaks))),
    ];
    let rows: Vec<Vec<String>> = rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
    format!("### Totals\n\n{}", markdown(&[("", false), ("", true)], &rows))
}

fn promises(runs: &[Results]) -> String {
    let mut all: BTreeMap<u8, (&str, [u64; 3], u64)> = BTreeMap::new();
    for promise in runs.iter().flat_map(|run| &run.promises) {
        let row = all.entry(promise.number).or_insert((promise.name.as_str(), [0; 3], 0));
        let [kept, unproven, broken] = &mut row.1;
        match promise.verdict {
            PromiseVerdict::Kept => *kept += 1,
            PromiseVerdict::Unproven | PromiseVerdict::Uncovered => *unproven += 1,
            PromiseVerdict::Broken => *broken += 1,
        }
        row.2 += promise.checked;
    }
    let row = |(number, (name, counts, checked)): (u8, (&str, [u64; 3], u64))| {
        let numbers = counts.into_iter().chain([checked]).map(thousands);
        [number.to_string(), name.to_owned()].into_iter().chain(numbers).collect()
    };
    let rows: Vec<Vec<String>> = all.into_iter().map(row).collect();
    let head = [
        ("", true),
        ("promise", false),
        ("kept in runs", true),
        ("unproven", true),
        ("broken", true),
        ("verified", true),
    ];
    format!("### Promises\n\n{}", markdown(&head, &rows))
}

fn checkers(runs: &[Results]) -> String {
    let mut all: BTreeMap<(usize, &str), (&str, u64, u64)> = BTreeMap::new();
    for checked in runs.iter().flat_map(|run| &run.checkers) {
        // I2 comes before I10.
        let row = all.entry((checked.id.len(), &checked.id)).or_insert((&checked.name, 0, 0));
        row.1 += checked.verdict.violations;
        row.2 += checked.verdict.checked;
    }
    let row = |((_, id), (name, violations, checked)): ((usize, &str), (&str, u64, u64))| {
        vec![id.to_owned(), name.to_owned(), thousands(violations), thousands(checked)]
    };
    let rows: Vec<Vec<String>> = all.into_iter().map(row).collect();
    let head = [("", false), ("invariant", false), ("violations", true), ("verified", true)];
    format!("### Invariants\n\n{}", markdown(&head, &rows))
}

/// Runs and operations of a workload under a nemesis.
#[derive(Default, Clone, Copy)]
struct Cell {
    runs: u64,
    ok: u64,
}

fn matrix(runs: &[Results]) -> String {
    let mut cells: BTreeMap<(&str, &str), Cell> = BTreeMap::new();
    for run in runs {
        for pair in &run.pairs {
            let cell = cells.entry((pair.workload.as_str(), pair.nemesis.as_str())).or_default();
            cell.runs += 1;
            cell.ok += pair.ok;
        }
    }
    let mut workloads: Vec<&str> = cells.keys().map(|(workload, _)| *workload).collect();
    workloads.dedup();
    let mut nemeses: Vec<&str> = cells.keys().map(|(_, nemesis)| *nemesis).collect();
    nemeses.sort_unstable();
    nemeses.dedup();
    let row = |nemesis: &&str| {
        let of = |workload: &&str| match cells.get(&(*workload, *nemesis)) {
            Some(cell) => format!("{} / {}", cell.runs, short(cell.ok)),
            None => "–".to_owned(),
        };
        [(*nemesis).to_owned()].into_iter().chain(workloads.iter().map(of)).collect()
    };
    let rows: Vec<Vec<String>> = nemeses.iter().map(row).collect();
    let head: Vec<(&str, bool)> =
        [("nemesis", false)].into_iter().chain(workloads.iter().map(|name| (*name, true))).collect();
    format!(
        "### Workloads under nemeses\n\nRuns / successful operations while a fault was active.\n\n{}",
        markdown(&head, &rows)
    )
}

/// Number with at most four characters, for the matrix.
fn short(number: u64) -> String {
    match number {
        0..10_000 => number.to_string(),
        10_000..1_000_000 => format!("{}k", number / 1000),
        _ => format!("{}.{}M", number / 1_000_000, number / 100_000 % 10),
    }
}

fn violations(runs: &[Results]) -> String {
    let mut lines = Vec::new();
    for run in runs {
        let command = run.command();
        for failure in &run.failures {
            lines.push(format!("- FAILED {failure}: `{command}`"));
        }
        for checked in run.checkers.iter().filter(|checked| !checked.verdict.holds()) {
            let first = checked.verdict.anomalies.first().map(|anomaly| anomaly.message.as_str());
            lines.push(format!(
                "- {} {}, {}: {}: `{command}`",
                checked.id,
                checked.name,
                counted(checked.verdict.violations, "violation"),
                first.unwrap_or_default()
            ));
        }
    }
    if lines.is_empty() {
        lines.push("No violations.".to_owned());
    }
    format!("### Violations\n\n{}\n", lines.join("\n"))
}

/// Runs that did too little, each with the command that repeats it; none if there is no such run.
fn undecided(runs: &[Results]) -> Option<String> {
    let undecided: Vec<&Results> = runs.iter().filter(|run| run.valid == Validity::Unknown).collect();
    let line = |run: &&Results| format!("- {}: `{}`", run.shortfalls.join("; "), run.command());
    let mut lines: Vec<String> = undecided.iter().take(UNDECIDED_MAX).map(line).collect();
    let more = undecided.len().saturating_sub(UNDECIDED_MAX) as u64;
    if more > 0 {
        lines.push(format!("- and {} more", thousands(more)));
    }
    (!lines.is_empty()).then(|| format!("### Undecided runs\n\n{}\n", lines.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::availability::Target;
    use crate::report::{AvailabilityRow, FaultCount, PairCount};

    fn run(valid: Validity) -> Results {
        let row = AvailabilityRow {
            nemesis: "kill".to_owned(),
            target: Target::Leader,
            faults: 1,
            gaps_ms: vec![700],
            operations: 10,
            ok: 9,
        };
        Results {
            valid,
            shortfalls: vec!["too little".to_owned()],
            pairs: vec![PairCount { workload: "hot".to_owned(), nemesis: "kill".to_owned(), ok: 12_000 }],
            faults: vec![FaultCount { nemesis: "kill".to_owned(), faults: 3, failed: 0 }],
            availability: vec![row],
            ..Results::default()
        }
    }

    #[test]
    fn runs_below_a_directory_add_up() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a", "b/c"] {
            let dir = dir.path().join(name);
            std::fs::create_dir_all(&dir).unwrap();
            std::fs::write(dir.join(RESULTS), serde_json::to_vec(&run(Validity::Yes)).unwrap()).unwrap();
        }
        let runs = read_all(dir.path()).unwrap();
        assert_eq!(runs.len(), 2);
        let text = aggregate(&runs);
        for line in [
            "| runs | 2 |",
            "| faults | 6 |",
            "| kill | 2 / 24k |",
            "| kill | leader | 2 | 700 ms | 700 ms | 90.0 % |",
            "No violations",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn weak_runs_are_listed_with_the_command_that_repeats_them() {
        let text = aggregate(&[run(Validity::Unknown)]);
        assert!(text.contains("### Undecided runs\n\n- too little: `ipam-jepsen live"), "{text}");
        assert!(text.contains("No violations.") && !text.contains("more"), "{text}");
        let many = aggregate(&vec![run(Validity::Unknown); UNDECIDED_MAX + 2]);
        assert_eq!(many.matches("- too little").count(), UNDECIDED_MAX, "{many}");
        assert!(many.contains("- and 2 more"), "{many}");
        assert!(!aggregate(&[run(Validity::Yes)]).contains("Undecided"));
    }
}
