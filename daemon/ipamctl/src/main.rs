//! `ipamctl`: the command line of ipamd.
//!
//! A command is a few HTTP requests to the API, a table, and an exit code from the catalogue of problems.
//! Data goes to standard output, messages to standard error, and destructive changes ask for confirmation.
//! Its folders, lowest first: `output/`, `settings/`, `client/`, `command/`, `grammar/`.
//!
//! **Invariant:** exit code 0 means that the requested state is reached, and 6 that the outcome is unknown.

mod client;
mod command;
mod grammar;
mod output;
mod settings;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

fn main() -> ExitCode {
    grammar::completion::answer();
    grammar::start::process(std::env::args_os().collect())
}
