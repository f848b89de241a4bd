//! Shell scripts in network namespaces.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};
use tokio::process::Command;

/// Command in the network namespace of a file. The process of the command is the program itself.
pub(super) fn inside(netns: &Path, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("nsenter");
    let mut file = std::ffi::OsString::from("--net=");
    file.push(netns);
    command.arg(file).arg("--").arg(program).kill_on_drop(true);
    command
}

/// Runs a script with arguments in a network namespace to its end.
pub(super) async fn run(netns: &Path, script: &str, words: &[&OsStr]) -> Result<String> {
    let mut command = inside(netns, "sh");
    command.args(["-ec", script, "sh"]).args(words).stdin(Stdio::null());
    let output = command.output().await.context("can't start nsenter; the package util-linux has it")?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        bail!("a script in {} failed ({}): {}", netns.display(), output.status, why.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
