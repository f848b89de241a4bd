//! Frame of the commands: configuration, runtime and output formats.

use std::process::ExitCode;

use clap::ValueEnum;
use ipam_api::problem::exit;
use ipam_api::screen::clean;

use crate::config::{Config, Flags};

/// Output format.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Output {
    /// Text for people.
    Table,
    /// One document.
    Json,
}

/// Runs a command with the agent's configuration.
///
/// # Errors
/// The exit code, after the reason was written to standard error.
pub(crate) fn with_config<T>(flags: &Flags, run: impl AsyncFnOnce(&Config) -> T) -> Result<T, ExitCode> {
    let config = Config::of(flags).map_err(|error| {
        eprintln!("ipam-agent: {}", clean(&error.to_string()));
        ExitCode::from(exit::USAGE)
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
        eprintln!("ipam-agent: {error}");
        ExitCode::FAILURE
    })?;
    Ok(runtime.block_on(run(&config)))
}
