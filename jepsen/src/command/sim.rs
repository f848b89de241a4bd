//! `ipam-jepsen sim`: simulated runs, one for each seed.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::{Outcome, names, time};
use crate::cores;
use crate::report::Validity;
use crate::sim::{self, Case, Series, SimulatedRun};
use crate::sync::held;

/// Examples in the help.
const EXAMPLES: &str = "\
Examples:
  ipam-jepsen sim                                       seeds 1 to 20, each 60 simulated seconds
  ipam-jepsen sim --seeds 1..200 --replay 10            the first ten twice: both must be the same to the bit
  ipam-jepsen sim --seeds 7 --store /tmp/seven --keep   one run, with its history and report
  ipam-jepsen sim --seeds 1..10000 --store DIR          can be interrupted: seeds of DIR are not repeated
  ipam-jepsen sim --seeds 1..200 --shrink 200           failing seeds become small cases
  ipam-jepsen sim --case jepsen/cases                   the stored cases of earlier defects

Each seed chooses up to three of the workloads and of the nemeses, three or five members, and the pace.
Exit codes: 0 all promises kept, 1 a promise broken or a replay that differs, 2 too many weak runs.";
/// Share of runs that may do too little for a verdict, in percent.
const WEAK_PERCENT_MAX: usize = 20;

/// Arguments of the subcommand.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Seeds: one, or the first and the last with two dots between them.
    #[arg(long, default_value = "1..20", value_parser = seeds)]
    seeds: RangeInclusive<u64>,
    /// Files of cases, or directories with them, instead of seeds.
    #[arg(long, value_name = "FILE", conflicts_with = "seeds")]
    case: Vec<PathBuf>,
    /// Simulated time in which clients work under faults.
    #[arg(long, default_value = "60s", value_parser = time::parse)]
    time: Duration,
    /// Workloads to choose from: all, or names with commas between them.
    #[arg(long, default_value = "all")]
    workload: String,
    /// Nemeses to choose from: all that the simulation knows, none, or names with commas between them.
    #[arg(long, default_value = "all")]
    nemesis: String,
    /// Directory of results, and of the runs that broke a promise.
    #[arg(long, default_value = "target/jepsen/sim")]
    store: PathBuf,
    /// Keep the history and the report of each run.
    #[arg(long)]
    keep: bool,
    /// Number of runs that are made twice and compared.
    #[arg(long, default_value_t = 0)]
    replay: usize,
    /// Most runs that make a failing case smaller.
    #[arg(long, default_value_t = 0)]
    shrink: usize,
    /// Option of the test build, such as a seeded bug.
    #[arg(long, value_name = "OPTION")]
    test_option: Vec<String>,
    /// End after the first run that broke a promise.
    #[arg(long)]
    until_violation: bool,
    /// Write log lines of all members to logs/simulation.log of each run, such as ipam=debug,turmoil=trace.
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
}

fn seeds(text: &str) -> Result<RangeInclusive<u64>, String> {
    let number = |text: &str| text.trim().parse::<u64>().map_err(|_| format!("{text} is no seed"));
    let (first, last) = match text.split_once("..") {
        Some((first, last)) => (number(first)?, number(last.trim_start_matches('='))?),
        None => (number(text)?, number(text)?),
    };
    if first > last { Err("the first seed is above the last".to_owned()) } else { Ok(first..=last) }
}

impl Arguments {
    /// Seeds of a soak, whose failing cases become small.
    pub(super) fn soak(seeds: RangeInclusive<u64>, store: PathBuf) -> Self {
        Self {
            seeds,
            case: Vec::new(),
            time: Duration::from_secs(60),
            workload: "all".to_owned(),
            nemesis: "all".to_owned(),
            store,
            keep: false,
            replay: 0,
            shrink: 100,
            test_option: Vec::new(),
            until_violation: false,
            log: None,
        }
    }
}

/// Counts of runs.
#[derive(Debug, Default)]
struct Count {
    held: usize,
    weak: usize,
    violated: usize,
}

/// Makes the runs, on all cores.
///
/// # Errors
/// If a run can't be made.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    sim::sweep();
    let series = Series::open(&arguments.store)?;
    let cases = cases(arguments)?;
    let left: Vec<(String, &Case)> = named(cases.iter().filter(|case| !series.has(case)));
    let count = Mutex::new(Count::default());
    let begun = Instant::now();
    cores::for_each(&left, |number, (name, case)| {
        let (found, is_same) = one(arguments, name, case, number < arguments.replay)?;
        series.add(&found)?;
        let mut count = held(&count);
        match found.results.valid {
            _ if !is_same => count.violated += 1,
            Validity::Yes => count.held += 1,
            Validity::Unknown => count.weak += 1,
            Validity::No => {
                count.violated += 1;
                return Ok(!arguments.until_violation);
            }
        }
        Ok(true)
    })?;
    let count = count.into_inner().unwrap_or_default();
    let made = count.held + count.weak + count.violated;
    let Count { held, weak, violated } = count;
    println!(
        "{made} runs in {} s: {held} held, {weak} did too little, {violated} broke a promise; {} made before",
        begun.elapsed().as_secs(),
        cases.len() - left.len()
    );
    let missing = sim::shortfalls(&sim::read_all(&arguments.store)?);
    if !missing.is_empty() {
        println!("all runs together did too little:\n  {}", missing.join("\n  "));
    }
    Ok(match violated {
        0 if weak * 100 > made * WEAK_PERCENT_MAX || !missing.is_empty() => Outcome::Undecided,
        0 => Outcome::Held,
        _ => Outcome::Violated,
    })
}

fn cases(arguments: &Arguments) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for path in &arguments.case {
        if !path.is_dir() {
            cases.push(Case::read(path)?);
            continue;
        }
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
        files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
        files.sort();
        for file in files {
            cases.push(Case::read(&file)?);
        }
    }
    if !arguments.case.is_empty() {
        ensure!(!cases.is_empty(), "there is no case in {:?}", arguments.case);
        return Ok(cases);
    }
    let workloads = names::chosen(&arguments.workload, &sim::workloads())?;
    let nemeses = names::chosen(&arguments.nemesis, sim::NEMESES)?;
    let idle = sim::idle_nemeses(&nemeses, &workloads);
    ensure!(
        arguments.nemesis.trim() == "all" || idle.is_empty(),
        "the nemeses {} affect none of the workloads {}; omit these nemeses, or choose more workloads, for \
         example with --workload all",
        idle.join(", "),
        workloads.join(", ")
    );
    let case = |seed| Case {
        test_options: arguments.test_option.clone(),
        ..Case::of_seed(seed, arguments.time, &workloads, &nemeses)
    };
    Ok(arguments.seeds.clone().map(case).collect())
}

/// Names of the directories of runs: the seed, and a number if an earlier case has the same seed.
fn named<'a>(cases: impl Iterator<Item = &'a Case>) -> Vec<(String, &'a Case)> {
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    let mut name = |case: &Case| {
        let count = counts.entry(case.seed).or_default();
        *count += 1;
        if *count == 1 { format!("seed-{}", case.seed) } else { format!("seed-{}.{count}", case.seed) }
    };
    cases.map(|case| (name(case), case)).collect()
}

/// Makes the run of a case, and prints its verdict. Returns false if a second run differs.
fn one(arguments: &Arguments, name: &str, case: &Case, is_twice: bool) -> Result<(SimulatedRun, bool)> {
    let begun = Instant::now();
    let dir = arguments.store.join(name);
    let found = sim::run_case(case, &dir, arguments.log.as_deref())?;
    let line = format!("{}, {:.1} s", found.shown(), begun.elapsed().as_secs_f64());
    println!("seed {}: {line}", case.seed);
    if is_twice {
        let again = arguments.store.join(format!("{name}.again"));
        sim::run_case(case, &again, arguments.log.as_deref())?;
        if let Err(difference) = sim::compare(&dir, &again) {
            println!("seed {}: {difference:#}", case.seed);
            return Ok((found, false));
        }
        std::fs::remove_dir_all(&again)?;
    }
    if found.results.valid == Validity::No {
        found.report(&dir)?;
        if arguments.shrink > 0 {
            let small = sim::smaller(&found, &dir, arguments.shrink)?;
            println!("seed {}: a smaller case that fails alike:\n{}", case.seed, small.text()?);
            std::fs::write(dir.join("case.json"), small.text()?)?;
        }
    } else if arguments.keep {
        found.report(&dir)?;
    } else {
        std::fs::remove_dir_all(&dir)?;
    }
    Ok((found, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_one_or_a_range() {
        assert_eq!(seeds("7").unwrap(), 7..=7);
        assert_eq!(seeds("1..200").unwrap(), 1..=200);
        assert_eq!(seeds("3..=4").unwrap(), 3..=4);
        assert!(seeds("9..1").is_err() && seeds("x").is_err());
    }

    #[test]
    fn cases_of_one_seed_have_directories_of_their_own() {
        let of = |seed| Case::of_seed(seed, Duration::ZERO, &["reads".to_owned()], &["kill".to_owned()]);
        let cases = [1, 2, 1].map(of);
        let names: Vec<String> = named(cases.iter()).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["seed-1", "seed-2", "seed-1.2"]);
    }

    #[test]
    fn a_named_nemesis_without_an_affected_workload_is_refused() {
        let chosen = |workload: &str, nemesis: &str| {
            let arguments = Arguments::soak(1..=1, PathBuf::new());
            cases(&Arguments { workload: workload.to_owned(), nemesis: nemesis.to_owned(), ..arguments })
        };
        let refused = chosen("reads", "kill,agents").unwrap_err().to_string();
        assert!(refused.starts_with("the nemeses agents affect none of the workloads reads"), "{refused}");
        assert_eq!(chosen("reads,cni", "kill,agents").unwrap().len(), 1);
        assert_eq!(chosen("reads", "all").unwrap().len(), 1);
    }
}
