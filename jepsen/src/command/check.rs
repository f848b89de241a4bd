//! `ipam-jepsen check`: a stored run, on any machine and without root.

use std::path::PathBuf;

use anyhow::Result;

use super::{Outcome, judge};

/// Arguments of the subcommand.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Directory of the stored run, with settings.json and history.jsonl.
    dir: PathBuf,
    /// The run has a seeded bug: it must be found.
    #[arg(long)]
    expect_violation: bool,
}

/// Checks the run.
///
/// # Errors
/// If it can't be read.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let outcome = judge::judge(&arguments.dir)?;
    Ok(if arguments.expect_violation { outcome.expecting_violation() } else { outcome })
}
