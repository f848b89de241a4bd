//! Process of a simulated run, and its results with the verdicts of all checkers.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Error, Result};
use clap::ValueEnum as _;
use ipam_agent::seeded::SeededBug;
use rustix::process::{Signal, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};

use super::VERSION;
use super::case::Case;
use super::run::run;
use crate::report::{self, RESULTS, Results, Validity};
use crate::seeded::{Process, options_of};
use crate::store;

/// Case with its results, stored as one line of a series.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SimulatedRun {
    /// The case.
    pub case: Case,
    /// Verdicts and figures.
    pub results: Results,
}

/// Longest time of a simulated run with its checkers; after this time the simulation counts as hanging.
const REAL_TIME_MAX: Duration = Duration::from_secs(180);
/// Name of the file with the case of a run.
const CASE: &str = "case.json";
/// Name of the file with the errors of a run's process.
const ERRORS: &str = "errors.log";
/// Text of a panic in [`ERRORS`].
const PANIC: &str = "panicked at";
/// Id of the checker of ends of processes.
const ENDS: &str = "I13";
/// Maximum number of lines of [`ERRORS`] in a result.
const ERROR_LINES_MAX: usize = 12;

/// Makes the run of a case in a directory, and checks it. The run has its own process, so that the task ids
/// by which tokio orders some of its work are the same each time.
///
/// # Errors
/// If the run can't be started. A panic of a member or an agent is a result.
pub fn run_case(case: &Case, dir: &Path, log: Option<&str>) -> Result<SimulatedRun> {
    if dir.exists() {
        fs::remove_dir_all(dir)?;
    }
    fs::create_dir_all(dir)?;
    fs::write(dir.join(CASE), case.text()?)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("simulate").arg(dir).args(log.iter().flat_map(|filter| ["--log", filter]));
    let errors = fs::File::create(dir.join(ERRORS))?;
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).spawn()?;
    let until = Instant::now() + REAL_TIME_MAX;
    let status = loop {
        match child.try_wait()? {
            Some(status) => break status.to_string(),
            None if Instant::now() > until => {
                child.kill()?;
                child.wait()?;
                break format!("it ran for more than {} s", REAL_TIME_MAX.as_secs());
            }
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    let results = match fs::read(dir.join(RESULTS)) {
        Ok(text) => serde_json::from_slice(&text)?,
        Err(_) => {
            let errors = fs::read_to_string(dir.join(ERRORS))?;
            let lines: Vec<&str> = errors.lines().take(ERROR_LINES_MAX).collect();
            let settings = case.plan(dir.to_owned(), None).settings(VERSION.to_owned(), String::new());
            let failure = format!("the simulation ended with {status}: {}", lines.join(" | "));
            Results { settings, ..Results::default() }.with_failures(&[failure])
        }
    };
    Ok(SimulatedRun { case: case.clone(), results })
}

/// Makes the run whose case is in a directory, and writes its results there.
///
/// # Errors
/// If the run can't be made or stored.
pub fn simulate(dir: &Path, log: Option<&str>) -> Result<()> {
    // Without the parent, no process waits for the result.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let case = Case::read(&dir.join(CASE))?;
    turn_on(&case.test_options)?;
    run(&case.plan(std::path::absolute(dir)?, log))?;
    let record = store::read(dir)?;
    let checked = report::run_checkers(&record);
    let results = report::results(&record, checked).with_failures(&record.settings.failures);
    fs::write(dir.join(RESULTS), serde_json::to_vec(&results)?)?;
    Ok(())
}

/// Turns options of test builds on in this process, which has all members and all agents.
fn turn_on(options: &[String]) -> Result<()> {
    for option in options_of(Process::Member, options) {
        ipam_raft::simulation::turn_on(&option)?;
    }
    for option in options_of(Process::Agent, options) {
        SeededBug::from_str(&option, false).map_err(Error::msg)?.turn_on();
    }
    Ok(())
}

impl SimulatedRun {
    /// Verdict and figures in a line, with the reasons of a bad verdict below.
    #[must_use]
    pub fn shown(&self) -> String {
        let results = &self.results;
        let [ok, ..] = results.ends();
        let verdict = match results.valid {
            Validity::Yes => "held",
            Validity::Unknown => "did too little",
            Validity::No => "VIOLATED",
        };
        let broken = self.broken().join(", ");
        let reasons = results.failures.iter().chain(&results.shortfalls);
        let reasons: String = reasons.map(|reason| format!("\n  {reason}")).collect();
        format!(
            "{verdict} {broken}{}{} under {}: {ok} operations ok, {} faults, {} leaders{reasons}",
            if broken.is_empty() { "" } else { " by " },
            self.case.workloads.join(","),
            self.case.nemeses.join(","),
            results.fault_count(),
            results.leader_changes + 1,
        )
    }

    /// Checkers that report violations. A member or an agent that panics ends the whole simulation, without a
    /// history to check: that is a violation of I13, which covers ends of processes.
    #[must_use]
    pub fn broken(&self) -> Vec<&str> {
        let broken = self.results.checkers.iter().filter(|checked| !checked.verdict.holds());
        let has_panicked = self.results.failures.iter().any(|failure| failure.contains(PANIC));
        broken.map(|checked| checked.id.as_str()).chain(has_panicked.then_some(ENDS)).collect()
    }

    /// Prints the results, and writes the page beside the run.
    ///
    /// # Errors
    /// If the run is not in this directory, or a file can't be written.
    pub fn report(&self, dir: &Path) -> Result<()> {
        println!("{}", report::text(&self.results));
        // A run that has panicked has no record.
        if let Ok(record) = store::read(dir) {
            fs::write(dir.join("report.html"), report::page(&record, &self.results))?;
        }
        Ok(())
    }
}
