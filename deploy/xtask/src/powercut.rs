//! `cargo xtask powercut` and `slow-disks`. A short form of the first is a stage of the tests.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::binaries;
use crate::jepsen_program::{Arguments, BENCH};
use crate::workspace::{Workspace, call};

/// The task of power cuts.
pub(crate) const POWERCUT: &str = "powercut";
/// The task of leaders that are killed on slow disks.
pub(crate) const SLOW_DISKS: &str = "slow-disks";
/// Exit code of `ipam-jepsen` for a broken guarantee; other codes except 0 mean an incomplete run.
const LOST: i32 = 1;
/// Arguments of the short run: every kind of cut, with a fixed seed.
const SHORT: [&str; 4] = ["--cuts", "20", "--seed", "20"];
/// Arguments of the run without fsync, where a few cuts suffice.
const WITHOUT_FSYNC: [&str; 5] = ["--cuts", "3", "--seed", "3", "--without-fsync"];

/// Builds the daemon that ships and the bench, and runs one of its tasks.
pub(crate) fn build_and_run(workspace: &Workspace, task: &str, arguments: &Arguments) -> Result<()> {
    binaries::build(workspace)?;
    let bench = binaries::build_quickly(workspace, &[BENCH])?.join(BENCH);
    call(
        Command::new(bench)
            .arg(task)
            .arg("--ipamd")
            .arg(workspace.dist().join("ipamd"))
            .args(&arguments.words),
    )
}

/// Makes the short run: nothing may be lost, and without fsync the bench must detect the loss.
pub(crate) fn test(workspace: &Workspace, ipamd: &Path) -> Result<()> {
    let program = binaries::build_quickly(workspace, &[BENCH])?.join(BENCH);
    let bench = || {
        let mut command = Command::new(&program);
        command.arg(POWERCUT).arg("--ipamd").arg(ipamd);
        command
    };
    call(bench().args(SHORT))?;
    println!("\nand now without fsync, which must not go well:");
    match bench().args(WITHOUT_FSYNC).status().context("can't start the bench")?.code() {
        Some(LOST) => Ok(()),
        Some(0) => {
            bail!("nothing was lost although nothing was synced: the bench doesn't see what it should")
        }
        _ => bail!("the bench without fsync has found out nothing"),
    }
}
