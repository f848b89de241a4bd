//! `ipam-jepsen suite`: the runs of the tests, which together use each workload and each nemesis.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;

use super::child::Run;
use super::{Outcome, report};

/// Arguments of the subcommand.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// Directory of all runs; an earlier suite there is replaced.
    #[arg(long, default_value = "target/jepsen/suite")]
    store: PathBuf,
    /// Directory with ipamd, ipamctl, ipam-cni and ipam-agent.
    #[arg(long, default_value = "target/debug")]
    bin_dir: PathBuf,
    /// Seed of the first run; each further run has the next one.
    #[arg(long, default_value_t = 26)]
    seed: u64,
    /// Only the runs with these numbers, from 1; may be repeated.
    #[arg(long)]
    only: Vec<usize>,
}

/// Maximum number of attempts of a run that does too little.
const ATTEMPTS: u32 = 3;

/// A run of the suite.
struct Entry {
    nemesis: &'static str,
    workload: &'static str,
    members: u8,
    is_secure: bool,
    seconds: u64,
}

const fn entry(nemesis: &'static str, workload: &'static str, seconds: u64) -> Entry {
    Entry { nemesis, workload, members: 3, is_secure: false, seconds }
}

const fn secure(entry: Entry) -> Entry {
    Entry { is_secure: true, ..entry }
}

const fn five(entry: Entry) -> Entry {
    Entry { members: 5, ..entry }
}

/// Runs of the suite. The mixed runs combine all workloads, so that the other runs may be short.
const ENTRIES: &[Entry] = &[
    entry("kill,rolling-kill,transfer", "alloc-any,alloc-specific,idempotence,churn", 12),
    secure(entry("partition,isolate-client,packets", "alloc-any,leases,reads,transactions", 18)),
    five(entry("pause,cpu,clock", "leases,exhaustion,dual-stack,prefixes", 16)),
    entry("power", "alloc-any,alloc-specific,transactions,prefixes,adopted", 20),
    entry("full-disk,failing-disk,slow-disk,stalled-disk", "churn,exhaustion,idempotence,admin", 14),
    entry("corruption,wipe,membership,upgrade", "alloc-any,reads,transactions", 16),
    secure(entry("agents,nodes,probes", "cni,gc-probe,sticky", 18)),
    entry("restore,costly", "alloc-any,alloc-specific,prefixes", 12),
    entry("kill,partition,pause,power,clock,agents", "all", 30),
];

/// Makes the runs, and prints the figures of all.
///
/// # Errors
/// If a run can't be started.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let began = Instant::now();
    let mut worst = Outcome::Held;
    for (run, seconds) in runs(arguments) {
        worst = worst.max(make(&run, seconds)?);
    }
    worst = worst.max(report::print(&arguments.store)?);
    eprintln!("all runs: {worst:?} after {} s", began.elapsed().as_secs());
    Ok(worst)
}

/// Makes a run, and repeats a run that did too little, each time for longer. On a slow machine, rare
/// operations may not meet a fault.
///
/// A violation is never repeated.
fn make(run: &Run, seconds: u64) -> Result<Outcome> {
    let mut last = Outcome::Undecided;
    for attempt in 1..=ATTEMPTS {
        let run = run.for_seconds(seconds * u64::from(attempt));
        eprintln!("\n{}, attempt {attempt}: {}", run.name, run.shown());
        let (outcome, took) = run.make()?;
        eprintln!("{}: {outcome:?} after {} s", run.name, took.as_secs());
        last = outcome;
        if outcome != Outcome::Undecided {
            break;
        }
    }
    Ok(last)
}

fn runs(arguments: &Arguments) -> Vec<(Run, u64)> {
    let run = |(number, entry): (usize, &Entry)| {
        let seed = arguments.seed.saturating_add(u64::try_from(number).unwrap_or_default());
        let mut words: Vec<String> = Vec::new();
        words.extend(["--nemesis".into(), entry.nemesis.into(), "--workload".into(), entry.workload.into()]);
        words.extend(["--members".into(), entry.members.to_string(), "--seed".into(), seed.to_string()]);
        if entry.is_secure {
            words.push("--secure".into());
        }
        let number = number.saturating_add(1);
        let run = Run {
            name: format!("run {number}"),
            words,
            store: arguments.store.join(format!("{number:02}")),
            bin_dir: arguments.bin_dir.clone(),
        };
        (run, entry.seconds)
    };
    let is_wanted = |number: usize| arguments.only.is_empty() || arguments.only.contains(&number);
    let numbered = ENTRIES.iter().enumerate().filter(|(number, _)| is_wanted(number.saturating_add(1)));
    numbered.map(run).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::command::names;

    #[test]
    fn the_suite_uses_each_workload_and_each_nemesis() {
        let used = |list: fn(&Entry) -> &'static str, all: &[&'static str]| -> BTreeSet<String> {
            ENTRIES.iter().flat_map(|entry| names::chosen(list(entry), all).unwrap()).collect()
        };
        let all = |names: Vec<&'static str>| names.into_iter().map(str::to_owned).collect::<BTreeSet<_>>();
        assert_eq!(used(|entry| entry.nemesis, &names::nemeses()), all(names::nemeses()));
        assert_eq!(used(|entry| entry.workload, &names::workloads()), all(names::workloads()));
        assert!(ENTRIES.len() >= 8);
        assert!(ENTRIES.iter().any(|entry| entry.members == 5));
        assert!(ENTRIES.iter().any(|entry| entry.is_secure));
    }
}
