//! `ipam-jepsen soak`: live and simulated runs in turn, for hours, in pieces that add up.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::child::Run;
use super::{Outcome, matrix, names, report, sim};
use crate::sim::Series;

/// Notes about the pieces of a soak.
const NOTES: &str = "\
A piece is one live run of the campaign that `matrix` makes, and a series of simulated runs. An interrupted
soak goes on where it ended: the directory has all runs.
  ipam-jepsen soak --hours 2 --store /var/tmp/soak
  ipam-jepsen soak --hours 2 --store /var/tmp/soak     two more hours
  ipam-jepsen report /var/tmp/soak";
/// Seeds of one series of simulated runs.
const SEEDS: u64 = 100;

/// Arguments of the subcommand.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = NOTES)]
pub struct Arguments {
    /// Hours after which no piece begins.
    #[arg(long, default_value_t = 2.0)]
    hours: f64,
    /// Directory of all runs.
    #[arg(long, default_value = "target/jepsen/soak")]
    store: PathBuf,
    /// Directory with ipamd, ipamctl, ipam-cni and ipam-agent.
    #[arg(long, default_value = "target/debug")]
    bin_dir: PathBuf,
    /// Make the other runs after a violation, too.
    #[arg(long)]
    keep_going: bool,
}

/// Makes pieces until the time is over, and prints the figures of all runs.
///
/// # Errors
/// If a run can't be made.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let until = Instant::now() + Duration::try_from_secs_f64(arguments.hours * 3600.0)?;
    let mut worst = Outcome::Held;
    while Instant::now() < until && (worst != Outcome::Violated || arguments.keep_going) {
        let run = next_live(&arguments.store, &arguments.bin_dir)?;
        eprintln!("\n{}: {}", run.name, run.shown());
        let (outcome, took) = run.make()?;
        eprintln!("{}: {outcome:?} after {} s", run.name, took.as_secs());
        let store = simulated(&arguments.store);
        let seeds = next_seeds(Series::open(&store)?.case_count());
        worst = worst.max(outcome).max(sim::run(&sim::Arguments::soak(seeds, store))?);
    }
    Ok(worst.max(report::print(&arguments.store)?))
}

fn simulated(store: &Path) -> PathBuf {
    store.join("simulated")
}

/// First live run that a soak lacks.
fn next_live(store: &Path, bin_dir: &Path) -> Result<Run> {
    let nemeses: Vec<String> = names::nemeses().into_iter().map(str::to_owned).collect();
    let runs = |rounds| {
        let campaign = matrix::Arguments::soak(rounds, store.join("live"), bin_dir.to_owned());
        matrix::runs(&campaign, &nemeses).into_iter().find(|run| !matrix::is_done(&run.store))
    };
    // A campaign of more rounds begins with the runs of one of fewer.
    (1..).find_map(runs).context("no round is left")
}

/// Seeds of the first series that is not complete; it skips those that were made.
fn next_seeds(made: usize) -> RangeInclusive<u64> {
    let complete = u64::try_from(made).unwrap_or(u64::MAX) / SEEDS * SEEDS;
    complete + 1..=complete + SEEDS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::RESULTS;

    #[test]
    fn an_interrupted_soak_goes_on_with_missing_runs() {
        let dir = tempfile::tempdir().unwrap();
        let next = || next_live(dir.path(), Path::new("bin")).unwrap();
        let first = next();
        // A run that was interrupted has no results.
        std::fs::create_dir_all(&first.store).unwrap();
        assert_eq!(next().store, first.store);
        let rounds = names::nemeses().len() + 1;
        let mut seen = Vec::new();
        for _ in 0..rounds {
            let run = next();
            std::fs::create_dir_all(&run.store).unwrap();
            std::fs::write(run.store.join(RESULTS), "{}").unwrap();
            seen.push(run.shown());
        }
        seen.dedup();
        assert_eq!(seen.len(), rounds, "each nemesis, and all of them together");
        assert!(next().name.starts_with("round 2"), "{}", next().name);
    }

    #[test]
    fn a_series_is_completed_before_the_next_one() {
        assert_eq!(next_seeds(0), 1..=100);
        assert_eq!(next_seeds(57), 1..=100);
        assert_eq!(next_seeds(100), 101..=200);
    }
}
