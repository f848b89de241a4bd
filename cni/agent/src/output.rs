//! Common parts of the commands: configuration, runtime, output formats and exit codes.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use ipam_api::problem::exit;
use ipam_api::screen::clean;
use serde::Serialize;

use crate::config::{Config, Flags};

/// Result of a command: its exit code, or the exit code of a failure with the reason.
pub(crate) type End = Result<u8, (u8, String)>;

/// Output format of a command's document.
#[derive(Debug, Args)]
pub(crate) struct Output {
    /// Output format
    #[arg(short, long, value_enum, default_value = "table")]
    output: Format,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// Text for people.
    Table,
    /// One document.
    Json,
}

impl Output {
    /// Prints a document as JSON, or as its table.
    pub(crate) fn print<T: Serialize>(&self, document: &T, table: impl FnOnce(&T) -> String) {
        match self.output {
            Format::Table => print!("{}", clean(&table(document))),
            Format::Json => println!("{}", serde_json::to_string_pretty(document).unwrap_or_default()),
        }
    }
}

/// Runs a command, and writes the reason of a failure to standard error.
pub(crate) fn run(command: impl Future<Output = End>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let end = match runtime {
        Ok(runtime) => runtime.block_on(command),
        Err(error) => Err((exit::REFUSED, error.to_string())),
    };
    ExitCode::from(end.unwrap_or_else(|(code, why)| {
        eprintln!("ipam-agent: {}", clean(&why));
        code
    }))
}

/// Runs a command with the agent's configuration.
pub(crate) fn run_with_config(flags: &Flags, command: impl AsyncFnOnce(&Config) -> End) -> ExitCode {
    run(async {
        let config = Config::of(flags).map_err(|error| (exit::USAGE, error.to_string()))?;
        command(&config).await
    })
}
