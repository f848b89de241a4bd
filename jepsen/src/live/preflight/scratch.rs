//! Temporary directory of the attempts, and scripts that run with mounts of their own.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, anyhow, bail};
use tempfile::TempDir;

use crate::live::Tools;

/// Directory with the helper program.
pub(super) struct Scratch {
    dir: TempDir,
    tools: Result<Tools>,
}

impl Scratch {
    pub(super) fn make() -> Result<Self> {
        let dir = TempDir::with_prefix("ipam-jepsen-preflight-").context("no place for temporary files")?;
        let tools = Tools::make(dir.path());
        Ok(Self { dir, tools })
    }

    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Helper program in C.
    pub(super) fn outside(&self) -> Result<&Path> {
        self.tools.as_ref().map(Tools::outside).map_err(|error| anyhow!("{error:#}"))
    }

    /// Runs a shell script in the directory and in a mount namespace, whose mounts end with it.
    ///
    /// The helper program is `$1`.
    pub(super) fn mounts(&self, script: &str) -> Result<String> {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "--", "sh", "-ec", script, "sh"]);
        command.arg(self.outside()?);
        self.output(&mut command)
    }

    /// Runs a command in the directory and returns its output.
    pub(super) fn output(&self, command: &mut Command) -> Result<String> {
        let program = command.get_program().display().to_string();
        let output = command
            .current_dir(self.path())
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("can't start {program}"))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().replace('\n', "; ");
        if !output.status.success() {
            bail!("{program} failed ({}): {}", output.status, text(&output.stderr));
        }
        Ok(text(&output.stdout))
    }
}
