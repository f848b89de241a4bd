//! `ipam-jepsen mutants`: a run for each seeded bug, which a checker must detect.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::bugs::{ALL, Bug};
use super::simulated::Runs;
use crate::checker;
use crate::command::Outcome;
use crate::cores;
use crate::store;
use crate::sync::held;

/// Arguments of the subcommand.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Bugs, with commas between them; all that such runs detect unless said.
    #[arg(long, value_delimiter = ',')]
    bug: Vec<String>,
    /// Run without the bugs: then nothing may be detected.
    #[arg(long)]
    control: bool,
    /// Print the bugs and run nothing.
    #[arg(long)]
    list: bool,
    /// Seed of all choices.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Directory with ipamd, ipamctl, ipam-cni and ipam-agent of the test build.
    #[arg(long, default_value = "target/debug")]
    bin_dir: PathBuf,
    /// Simulate the runs: one seed after another, until a checker detects the bug.
    #[arg(long)]
    sim: bool,
    /// Most seeds of each bug in simulated runs.
    #[arg(long, default_value_t = 200)]
    seeds: u64,
    /// Directory of the runs, one below it for each bug.
    #[arg(long, default_value = "target/jepsen/mutants")]
    store: PathBuf,
}

/// Makes a run for each chosen bug, and prints a table.
///
/// # Errors
/// If a run is not possible, or for an unknown name.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    if let Some(unknown) = arguments.bug.iter().find(|name| !ALL.iter().any(|bug| bug.option == **name)) {
        bail!("{unknown} is no seeded bug; `ipam-jepsen mutants --list` prints all");
    }
    if arguments.list {
        for bug in ALL {
            println!("{:<24} {} [{}]", bug.option, bug.defect, bug.checkers.join(", "));
            if let Some(gap) = bug.gap {
                println!("{:<24} not by short live runs: {gap}", "");
            }
        }
        return Ok(Outcome::Held);
    }
    let is_named = |bug: &Bug| arguments.bug.iter().any(|name| name == bug.option);
    let is_run = |bug: &Bug| arguments.sim || bug.gap.is_none();
    let is_chosen = |bug: &&Bug| is_named(bug) || (arguments.bug.is_empty() && is_run(bug));
    let seeds = if arguments.sim { " seeds |" } else { "" };
    println!("| bug | workloads | nemeses | detected by | seconds |{seeds}");
    println!("|---|---|---|---|---|{}", if arguments.sim { "---|" } else { "" });
    let chosen: Vec<&Bug> = ALL.iter().filter(is_chosen).collect();
    if arguments.sim { simulate(arguments, &chosen) } else { start(arguments, &chosen) }
}

/// Makes live runs, one after another.
fn start(arguments: &Arguments, bugs: &[&Bug]) -> Result<Outcome> {
    let mut outcome = Outcome::Held;
    for bug in bugs {
        let begun = Instant::now();
        let found = detected(bug, arguments)?;
        println!("{}", row(bug, &found, begun.elapsed()));
        outcome = outcome.max(arguments.verdict(bug, &found));
    }
    Ok(outcome)
}

/// Makes simulated runs, on all cores.
fn simulate(arguments: &Arguments, bugs: &[&Bug]) -> Result<Outcome> {
    let mut all: Vec<(&Bug, Runs)> = Vec::new();
    for bug in bugs {
        match Runs::of(bug)? {
            Some(runs) => all.push((*bug, runs)),
            None if arguments.bug.is_empty() => {}
            None => bail!("only live runs detect {}: omit --sim", bug.option),
        }
    }
    let outcome = Mutex::new(Outcome::Held);
    cores::for_each(&all, |_, (bug, runs)| {
        let begun = Instant::now();
        let option = (!arguments.control).then_some(bug.option);
        let dir = arguments.store.join(bug.option);
        let (found, seeds) = runs.detect(option, arguments.seeds, &dir)?;
        println!("{} {seeds} |", row(bug, &found, begun.elapsed()));
        let mut outcome = held(&outcome);
        *outcome = (*outcome).max(arguments.verdict(bug, &found));
        Ok(true)
    })?;
    let outcome = *held(&outcome);
    Ok(outcome)
}

impl Arguments {
    /// Outcome for a bug by the checkers that report violations.
    fn verdict(&self, bug: &Bug, found: &[String]) -> Outcome {
        let is_detected = found.iter().any(|id| bug.checkers.contains(&id.as_str()));
        Outcome::of(if self.control { found.is_empty() } else { is_detected })
    }
}

fn row(bug: &Bug, found: &[String], took: Duration) -> String {
    let Bug { option, workloads, nemeses, .. } = bug;
    let found = if found.is_empty() { "nothing".to_owned() } else { found.join(", ") };
    format!("| `{option}` | {workloads} | {nemeses} | {found} | {} |", took.as_secs())
}

/// Makes a run, and returns the checkers that report violations.
fn detected(bug: &Bug, arguments: &Arguments) -> Result<Vec<String>> {
    let dir = arguments.store.join(bug.option);
    if dir.exists() {
        std::fs::remove_dir_all(&dir).with_context(|| dir.display().to_string())?;
    }
    // A process of its own: a run has its own namespaces.
    let mut live = Command::new(std::env::current_exe()?);
    live.args(["live", "--quiet", "--workload", bug.workloads, "--nemesis", bug.nemeses]);
    live.arg("--time").arg(format!("{}s", bug.time_s)).arg("--seed").arg(arguments.seed.to_string());
    live.arg("--bin-dir").arg(&arguments.bin_dir).arg("--store").arg(&dir);
    if !arguments.control {
        live.args(["--test-option", bug.option, "--expect-violation"]);
    }
    let status =
        live.stdin(Stdio::null()).stdout(Stdio::null()).status().context("the run can't be started")?;
    let found = violations(&dir).with_context(|| format!("{}: the run ended with {status}", bug.option))?;
    Ok(found)
}

/// Checkers that report violations of a stored run.
fn violations(dir: &Path) -> Result<Vec<String>> {
    let record = store::read(dir)?;
    let verdicts = checker::all().into_iter().map(|checker| (checker.id(), checker.check(&record)));
    let broken = verdicts.filter(|(_, verdict)| verdict.violations > 0);
    Ok(broken.map(|(id, _)| id.to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_bug_that_only_live_runs_detect_is_refused_in_simulations() {
        let arguments = Arguments {
            bug: vec!["bug-local-lease".to_owned()],
            control: false,
            list: false,
            seed: 1,
            bin_dir: PathBuf::new(),
            sim: true,
            seeds: 1,
            store: PathBuf::new(),
        };
        let refused = run(&arguments).unwrap_err().to_string();
        assert_eq!(refused, "only live runs detect bug-local-lease: omit --sim");
    }

    #[test]
    fn a_row_names_what_was_detected() {
        let bug = ALL.iter().find(|bug| bug.option == "bug-local-read").unwrap();
        let shown = row(bug, &["I10".to_owned(), "I2".to_owned()], Duration::from_millis(31_900));
        assert_eq!(shown, "| `bug-local-read` | reads,alloc-specific | partition | I10, I2 | 31 |");
        assert!(row(bug, &[], Duration::ZERO).contains("| nothing |"));
    }
}
