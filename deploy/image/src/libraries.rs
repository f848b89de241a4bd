//! Shared libraries of programs that are not static, so that tests run an image of their own builds.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::PROGRAMS;

/// Loader and libraries of the programs of a directory, as `ldd` finds them. Static programs have none.
///
/// # Errors
/// If `ldd` can't be started.
pub fn libraries(binaries: &Path) -> Result<Vec<PathBuf>> {
    let mut all = BTreeSet::new();
    for (name, _) in PROGRAMS {
        let output = Command::new("ldd").arg(binaries.join(name)).output().context("can't start ldd")?;
        all.extend(paths(&String::from_utf8_lossy(&output.stdout)));
    }
    Ok(all.into_iter().collect())
}

/// Absolute paths in the output of `ldd`: `libc.so.6 => /lib/libc.so.6 (0x…)`, or the loader alone.
fn paths(printed: &str) -> impl Iterator<Item = PathBuf> {
    printed
        .lines()
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')).map(PathBuf::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_from_the_output_of_ldd() {
        let printed =
            "\tlinux-vdso.so.1 (0x1)\n\tlibc.so.6 => /lib/x/libc.so.6 (0x2)\n\t/lib64/ld.so.2 (0x3)\n";
        let found: Vec<PathBuf> = paths(printed).collect();
        assert_eq!(found, [Path::new("/lib/x/libc.so.6"), Path::new("/lib64/ld.so.2")]);
        assert_eq!(paths("\tnot a dynamic executable\n").count(), 0);
    }
}
