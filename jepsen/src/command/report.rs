//! `ipam-jepsen report`: figures of all runs below a directory.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{Outcome, judge};
use crate::{report, sim};

/// Arguments of the subcommand.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Directory with stored runs at any depth.
    dir: PathBuf,
}

/// Prints the figures of all runs as Markdown.
///
/// # Errors
/// If a result can't be read.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    print(&arguments.dir)
}

/// Prints the figures of all runs below a directory; returns the worst outcome.
pub(super) fn print(dir: &Path) -> Result<Outcome> {
    let live = report::read_all(dir)?;
    if !live.is_empty() {
        println!("## Live runs\n\n{}", report::aggregate(&live));
    }
    let simulated = sim::read_all(dir)?;
    if !simulated.is_empty() {
        println!("## Simulated runs\n\n{}", report::aggregate(&simulated));
    }
    let worst = |runs: &[report::Results]| runs.iter().map(|run| judge::outcome(run.valid)).max();
    // A simulated run alone is too short for a verdict on coverage.
    let simulated =
        worst(&simulated).map(|worst| if worst == Outcome::Undecided { Outcome::Held } else { worst });
    Ok(worst(&live).max(simulated).unwrap_or(Outcome::Undecided))
}
