//! Paths of the checkout, and calls of build tools.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// The checkout that this tool belongs to.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    /// Cargo's target directory, absolute.
    pub(crate) target: PathBuf,
}

impl Workspace {
    pub(crate) fn find() -> Result<Self> {
        // cargo sets the variable when it runs us; the compiled-in path serves a direct start.
        let here = std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root =
            here.ancestors().nth(2).context("this tool is not in deploy/xtask of a checkout")?.to_owned();
        let target = match std::env::var_os("CARGO_TARGET_DIR").filter(|dir| !dir.is_empty()) {
            Some(dir) => std::path::absolute(dir).context("CARGO_TARGET_DIR")?,
            None => root.join("target"),
        };
        Ok(Self { root, target })
    }

    /// Directory of the shipped binaries.
    pub(crate) fn dist(&self) -> PathBuf {
        self.target.join("dist")
    }

    /// `cargo`, at the root of the checkout.
    pub(crate) fn cargo<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(arguments).current_dir(&self.root).env("CARGO_TARGET_DIR", &self.target);
        // CI builds a clone once: incremental files are useless, and few units of a crate compile faster.
        // Line tables help little, because the message of a panic has its own line.
        if std::env::var_os("CI").is_some() {
            command.env("CARGO_INCREMENTAL", "0").env("CARGO_PROFILE_DEV_DEBUG", "false");
            command.env("CARGO_PROFILE_DEV_CODEGEN_UNITS", "3");
        }
        // `cargo xtask` sets variables of its own package, for which build scripts such as that of ring would
        // run again.
        for (name, _) in std::env::vars_os() {
            if name
                .to_str()
                .is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
            {
                command.env_remove(name);
            }
        }
        command
    }

    /// True if `cargo <name>` is installed.
    pub(crate) fn has_cargo_tool(&self, name: &str) -> bool {
        self.cargo([name, "--version"]).output().is_ok_and(|output| output.status.success())
    }
}

/// Runs a command, showing it first.
pub(crate) fn call(command: &mut Command) -> Result<()> {
    let shown = show(command);
    println!("$ {shown}");
    let status = command.status().with_context(|| format!("can't start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed: {status}");
    }
    Ok(())
}

/// A command as typed in a shell.
fn show(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words: Vec<String> = std::iter::once(program)
        .chain(command.get_args())
        .map(|word| {
            let word = word.to_string_lossy();
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+".contains(c);
            if !word.is_empty() && word.chars().all(plain) { word.into_owned() } else { format!("'{word}'") }
        })
        .collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_one_would_type_it() {
        let mut command = Command::new("/somewhere/bin/cargo");
        command.args(["nextest", "run", "-E", "not binary(kill)"]);
        assert_eq!(show(&command), "cargo nextest run -E 'not binary(kill)'");
    }
}
