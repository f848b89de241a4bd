//! `ipam-jepsen report`: figures of all runs below a directory.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{Outcome, judge};
use crate::report;

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
    let runs = report::read_all(dir)?;
    println!("{}", report::aggregate(&runs));
    let outcomes = runs.iter().map(|run| judge::outcome(run.valid));
    Ok(outcomes.max().unwrap_or(Outcome::Undecided))
}
