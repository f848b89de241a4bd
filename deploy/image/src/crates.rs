//! Crates that the shipped programs contain, with the features of each program and for this machine.
//!
//! Crates that only build the programs (macros, build scripts) are left out.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::PROGRAMS;

/// Crate of a program. Its text is the name with the version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Crate {
    /// Name, as in `Cargo.lock`.
    pub name: String,
    /// Version, as in `Cargo.lock`.
    pub version: String,
    /// Licence, as the crate's manifest expresses it.
    pub licence: String,
}

impl fmt::Display for Crate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.version)
    }
}

/// Crates of all shipped programs of a checkout.
///
/// # Errors
/// If cargo fails.
pub fn shipped(root: &Path) -> Result<BTreeSet<Crate>> {
    let mut crates = BTreeSet::new();
    for (package, features) in PROGRAMS {
        let edges = ["tree", "--edges", "normal,no-proc-macro", "--prefix", "none", "--no-dedupe"];
        let format = ["--format", "{p}\t{l}", "--package", package, "--features", features];
        crates.extend(parsed(&cargo(root, &[&edges[..], &format].concat())?)?);
    }
    Ok(crates)
}

/// Output of a command of cargo, which must leave `Cargo.lock` as it is.
pub(crate) fn cargo(root: &Path, words: &[&str]) -> Result<String> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let output = command.args(words).arg("--locked").current_dir(root).output();
    let output = output.context("can't start cargo")?;
    if !output.status.success() {
        bail!("cargo {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Target of this machine, as the compiler names it.
pub(crate) fn host(root: &Path) -> Result<String> {
    let mut command = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let output = command.arg("-vV").current_dir(root).output().context("can't start rustc")?;
    let printed = String::from_utf8(output.stdout)?;
    let host = printed.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(|host| host.trim().to_owned()).context("rustc -vV names no host")
}

/// Crates that cargo printed, one a line: name, version and licence.
fn parsed(printed: &str) -> Result<BTreeSet<Crate>> {
    let lines = printed.lines().filter(|line| !line.trim().is_empty());
    let parse = |line: &str| {
        let (package, licence) = line.split_once('\t')?;
        let mut words = package.split(' ');
        let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
        Some(Crate { name: name.into(), version: version.into(), licence: licence.trim().into() })
    };
    lines.map(|line| parse(line).with_context(|| format!("cargo tree printed {line:?}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_is_listed_once() {
        let serde = "serde v1.0.1\tMIT OR Apache-2.0\n";
        let printed = format!("ipamd v0.1.0 (/x/daemon)\tApache-2.0\n{serde}\n{serde}");
        let crates = parsed(&printed).unwrap();
        let shown: Vec<String> = crates.iter().map(|one| format!("{one}: {}", one.licence)).collect();
        assert_eq!(shown, ["ipamd 0.1.0: Apache-2.0", "serde 1.0.1: MIT OR Apache-2.0"]);
        assert!(parsed("serde\n").is_err());
    }
}
