//! `cargo xtask jepsen`: builds the programs and runs fault injection. Its suite is a stage of the tests.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::binaries;
use crate::jepsen_program::BENCH;
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

/// Programs under test.
const PROGRAMS: &[&str] = &["ipamd", "ipamctl", "ipam-cni", "ipam-agent"];
/// Short runs over all workloads and nemeses.
const SUITE: &str = "suite";
/// Tasks that start the programs under test.
const LIVE: [&str; 5] = ["live", "matrix", SOAK, SUITE, MUTANTS];
/// Live and simulated runs in turn.
const SOAK: &str = "soak";
/// Tasks and options with simulated runs, for which the program is optimized.
const SIMULATED: [&str; 3] = [SIM, "--sim", SOAK];
/// One run for each seed.
const SIM: &str = "sim";
/// Seeds of the tests.
const SEEDS: &str = "1..200";
/// Number of runs that the tests repeat and compare.
const REPLAYS: &str = "10";
/// Stored cases of earlier defects, and of an upgrade.
const CASES: &str = "jepsen/cases";
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
    let simulates = words.iter().any(|word| SIMULATED.iter().any(|task| word == task));
    let is_live = words.first().is_some_and(|task| LIVE.iter().any(|live| task == live));
    let bin_dir = match (is_live, arguments.shipped) {
        (true, true) => {
            binaries::build(workspace)?;
            workspace.dist()
        }
        (true, false) => binaries::build_quickly(workspace, PROGRAMS)?,
        (false, _) => workspace.dist(),
    };
    let mut command = if simulates { Command::new(simulation(workspace)?) } else { jepsen(workspace)? };
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

/// Stage of the tests: simulated runs, replays, and seeded bugs in simulated runs.
pub(crate) fn simulate(workspace: &Workspace) -> Result<()> {
    let store = workspace.target.join("jepsen").join(SIM);
    // The stored series would count the runs of an earlier program.
    if store.exists() {
        std::fs::remove_dir_all(&store)?;
    }
    let program = simulation(workspace)?;
    let run = |words: &[&str], name: &str| {
        let mut command = Command::new(&program);
        call(command.args(words).arg("--store").arg(store.join(name)).current_dir(&workspace.root))
    };
    run(&[SIM, "--seeds", SEEDS, "--time", "60s", "--replay", REPLAYS], "seeds")?;
    run(&[SIM, "--case", CASES], "cases")?;
    run(&[MUTANTS, "--sim"], MUTANTS)
}

/// Builds the program of simulated runs, optimised.
fn simulation(workspace: &Workspace) -> Result<PathBuf> {
    Ok(binaries::build_optimised_for_tests(workspace)?.join(BENCH))
}

/// Builds the programs under test as the other tests build them; returns their folder.
pub(crate) fn build_quickly(workspace: &Workspace) -> Result<PathBuf> {
    binaries::build_quickly(workspace, PROGRAMS)
}

fn jepsen(workspace: &Workspace) -> Result<Command> {
    Ok(Command::new(binaries::build_quickly(workspace, &[BENCH])?.join(BENCH)))
}
