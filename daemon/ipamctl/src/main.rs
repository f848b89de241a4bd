//! `ipamctl`: the command line of ipamd.
//!
//! It knows nothing that the API doesn't say: every command is a few HTTP calls, a table, and an exit code
//! out of the catalogue of problems. Data goes to standard output, talk to standard error, and what could
//! hurt asks first. Its folders, lowest first: `output/`, `settings/`, `client/`, `command/`, `grammar/`.
//!
//! **Invariant:** an exit code of 0 means that what was asked for is the case; 6 that it is unknown.

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
