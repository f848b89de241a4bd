//! `cargo xtask bench`: builds the programs that ship and the load generator, unpacks etcd, and measures.

use std::ffi::OsString;
use std::process::Command;

use anyhow::Result;

use crate::jepsen_program::BENCH;
use crate::workspace::{Workspace, call};
use crate::{binaries, failover};

/// Arguments of the bench, after those that name the programs.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Arguments {
    /// Task of the bench with its arguments: `compare` unless said; --help lists all.
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

/// Task without arguments.
const COMPARE: &str = "compare";
/// Tasks that start the programs.
const LIVE: [&str; 2] = [COMPARE, "run"];

/// Builds the programs, and runs one task.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let mut words = match arguments.words.as_slice() {
        // Options alone belong to the comparison.
        [first, ..] if !first.to_string_lossy().starts_with('-') || first == "--help" => {
            arguments.words.clone()
        }
        options => [OsString::from(COMPARE)].iter().chain(options).cloned().collect(),
    };
    let is_live = words.first().is_some_and(|task| LIVE.iter().any(|live| task == live));
    if is_live && !words.iter().any(|word| word == "--help") {
        binaries::build(workspace)?;
        words.extend(["--bin-dir".into(), workspace.dist().into(), "--etcd".into()]);
        words.push(failover::etcd(workspace)?.into());
    }
    // The load generator is optimised, since it shares the cores with the systems.
    let bench = binaries::build_optimised(workspace, BENCH)?;
    call(Command::new(bench).arg("bench").args(words))
}
