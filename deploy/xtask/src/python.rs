//! Tools from PyPI, each in a virtual environment of its own.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::packages;
use crate::workspace::{Workspace, call};

/// Virtual environment with exactly the packages of `deploy/xtask/contract/<name>.txt`. It is created if it
/// is missing.
pub(crate) fn environment(workspace: &Workspace, name: &str) -> Result<PathBuf> {
    let list = workspace.root.join("deploy/xtask/contract").join(format!("{name}.txt"));
    let wanted = fs::read_to_string(&list)?;
    let home = workspace.target.join("tools").join(name);
    let installed = home.join("installed.txt");
    if fs::read_to_string(&installed).is_ok_and(|text| text == wanted) {
        return Ok(home);
    }
    packages::ensure_python()?;
    if home.exists() {
        fs::remove_dir_all(&home)?;
    }
    call(Command::new("python3").args(["-m", "venv"]).arg(&home))?;
    let quiet = ["install", "--quiet", "--disable-pip-version-check", "--requirement"];
    call(Command::new(home.join("bin/pip")).args(quiet).arg(&list))?;
    fs::write(installed, wanted)?;
    Ok(home)
}
