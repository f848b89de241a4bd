//! `cargo xtask jepsen`: builds the programs and runs fault injection. Its suite is a stage of the tests.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::binaries;
use crate::workspace::{Workspace, call};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Test the binaries that ship, optimised and static, instead of those that cargo builds for the tests.
    #[arg(long)]
    shipped: bool,
    /// Task of ipam-jepsen with its arguments: `suite` unless said; `help` lists all.
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

/// Program with all tasks.
const JEPSEN: &str = "ipam-jepsen";
/// Programs under test.
const PROGRAMS: &[&str] = &["ipamd", "ipamctl", "ipam-cni", "ipam-agent"];
/// Short runs over all workloads and nemeses.
const SUITE: &str = "suite";
/// Tasks that start the programs under test.
const LIVE: [&str; 4] = ["live", "matrix", SUITE, MUTANTS];
/// Runs with seeded bugs, which checkers must detect.
const MUTANTS: &str = "mutants";
/// Bugs of the tests: each is detected within half a minute.
const BUGS: &str = "bug-partial-transaction,bug-missing-event,bug-miscounted-prefix";

/// Builds the programs, and runs one task.
pub(crate) fn build_and_run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let words = match arguments.words.as_slice() {
        [] => vec![SUITE.into()],
        words => words.to_vec(),
    };
    let is_live = words.first().is_some_and(|task| LIVE.iter().any(|live| task == live));
    let bin_dir = match (is_live, arguments.shipped) {
        (true, true) => {
            binaries::build(workspace)?;
            workspace.dist()
        }
        (true, false) => binaries::build_quickly(workspace, PROGRAMS)?,
        (false, _) => workspace.dist(),
    };
    let mut command = jepsen(workspace)?;
    command.args(&words);
    if is_live {
        command.arg("--bin-dir").arg(bin_dir);
    }
    call(&mut command)
}

/// Stage of the tests: the suite, and with the test build some seeded bugs. `bin_dir` has the programs under
/// test.
pub(crate) fn test(workspace: &Workspace, bin_dir: &Path, shipped: bool) -> Result<()> {
    let run = |task: &str, words: &[&str]| {
        let store = workspace.target.join("jepsen").join(task);
        let mut command = jepsen(workspace)?;
        call(command.arg(task).args(words).arg("--bin-dir").arg(bin_dir).arg("--store").arg(store))
    };
    run(SUITE, &[])?;
    // The shipped binaries have no seeded bugs.
    if !shipped {
        run(MUTANTS, &["--bug", BUGS])?;
    }
    Ok(())
}

/// The programs under test of a test run, built if they are not the shipped ones.
pub(crate) fn build_quickly(workspace: &Workspace) -> Result<std::path::PathBuf> {
    binaries::build_quickly(workspace, PROGRAMS)
}

fn jepsen(workspace: &Workspace) -> Result<Command> {
    Ok(Command::new(binaries::build_quickly(workspace, &[JEPSEN])?.join(JEPSEN)))
}
