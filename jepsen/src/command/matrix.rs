//! `ipam-jepsen matrix`: a campaign of runs that can be interrupted and continued.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::child::Run;
use super::{Outcome, names, report, time};

/// Notes about the pieces of a campaign.
const NOTES: &str = "\
Every round makes one run for each nemesis, with all workloads, and one with all nemeses together. Even rounds
have five members. Every second run has TLS and tokens. Runs that the directory has already are skipped, so
that a campaign can be made in pieces:
  ipam-jepsen matrix --rounds 1 --time 60s --store /var/tmp/jepsen
  ipam-jepsen matrix --rounds 3 --time 60s --store /var/tmp/jepsen     only rounds 2 and 3";

/// Arguments of the subcommand.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = NOTES)]
pub struct Arguments {
    /// Nemeses: all, or names with commas between them.
    #[arg(long, default_value = "all")]
    nemesis: String,
    /// Workloads of each run: all, or names with commas between them.
    #[arg(long, default_value = "all")]
    workload: String,
    /// Time of each run.
    #[arg(long, default_value = "60s", value_parser = time::parse)]
    time: Duration,
    /// Number of rounds.
    #[arg(long, default_value_t = 1)]
    rounds: u64,
    /// Seed of the first run; each further run has the next one.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Directory of all runs.
    #[arg(long, default_value = "target/jepsen/matrix")]
    store: PathBuf,
    /// Directory with ipamd, ipamctl, ipam-cni and ipam-agent.
    #[arg(long, default_value = "target/debug")]
    bin_dir: PathBuf,
    /// Make the other runs after a violation, too.
    #[arg(long)]
    keep_going: bool,
}

impl Arguments {
    /// A campaign of a soak: all workloads and nemeses, a minute each.
    pub(super) fn soak(rounds: u64, store: PathBuf, bin_dir: PathBuf) -> Self {
        let all = || "all".to_owned();
        let time = Duration::from_secs(60);
        Self { nemesis: all(), workload: all(), time, rounds, seed: 1, store, bin_dir, keep_going: false }
    }
}

/// Makes the missing runs, and prints the figures of all.
///
/// # Errors
/// If a run can't be started.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let nemeses = names::chosen(&arguments.nemesis, &names::nemeses())?;
    let mut worst = Outcome::Held;
    for run in runs(arguments, &nemeses) {
        if is_done(&run.store) {
            continue;
        }
        eprintln!("\n{}: {}", run.name, run.shown());
        let (outcome, took) = run.make()?;
        eprintln!("{}: {outcome:?} after {} s", run.name, took.as_secs());
        worst = worst.max(outcome);
        if outcome == Outcome::Violated && !arguments.keep_going {
            break;
        }
    }
    std::fs::create_dir_all(&arguments.store).with_context(|| arguments.store.display().to_string())?;
    Ok(worst.max(report::print(&arguments.store)?))
}

/// All runs of a campaign, in order. The same arguments give the same runs.
pub(super) fn runs(arguments: &Arguments, nemeses: &[String]) -> Vec<Run> {
    let mut runs = Vec::new();
    let all = nemeses.join(",");
    for round in 1..=arguments.rounds {
        let singles = nemeses.iter().map(|name| (name.as_str(), name.as_str()));
        let mixed = (nemeses.len() > 1).then_some(("mixed", all.as_str()));
        for (name, nemesis) in singles.chain(mixed) {
            let number = u64::try_from(runs.len()).unwrap_or(u64::MAX);
            let members = if round.is_multiple_of(2) { 5 } else { 3 };
            let mut words: Vec<String> = vec!["--workload".into(), arguments.workload.clone()];
            words.extend(["--nemesis".into(), nemesis.to_owned()]);
            words.extend(["--time".into(), format!("{}ms", arguments.time.as_millis())]);
            words.extend(["--members".into(), members.to_string()]);
            words.extend(["--seed".into(), arguments.seed.saturating_add(number).to_string()]);
            if !number.is_multiple_of(2) {
                words.push("--secure".into());
            }
            runs.push(Run {
                name: format!("round {round}, {name}"),
                words,
                store: arguments.store.join(format!("{round:02}-{name}")),
                bin_dir: arguments.bin_dir.clone(),
            });
        }
    }
    runs
}

/// True if a run has ended with a report.
pub(super) fn is_done(store: &Path) -> bool {
    store.join(crate::report::RESULTS).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(rounds: u64) -> Arguments {
        Arguments {
            nemesis: "all".into(),
            workload: "all".into(),
            time: Duration::from_secs(60),
            rounds,
            seed: 7,
            store: "campaign".into(),
            bin_dir: "bin".into(),
            keep_going: false,
        }
    }

    #[test]
    fn a_longer_campaign_begins_with_the_runs_of_a_shorter_one() {
        let nemeses = ["kill".to_owned(), "power".to_owned()];
        let shown = |rounds| -> Vec<(PathBuf, String)> {
            let runs = runs(&arguments(rounds), &nemeses);
            runs.into_iter().map(|run| (run.store.clone(), run.shown())).collect()
        };
        let (one, two) = (shown(1), shown(2));
        assert_eq!((one.len(), two.len()), (3, 6));
        assert!(two.starts_with(&one));
        assert!(two.iter().any(|(_, words)| words.contains("--members 5 --seed 10 --secure")), "{two:?}");
        assert_eq!(two.first().unwrap().0, Path::new("campaign/01-kill"));
    }
}
