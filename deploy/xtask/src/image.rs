//! `cargo xtask image`: the container image, as one OCI archive.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use ipam_image::{Image, NAME, licences};

use crate::binaries;
use crate::workspace::Workspace;

/// Time of all entries, by the convention of reproducible builds.
const TIME: &str = "SOURCE_DATE_EPOCH";

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Directory with the programs, instead of building those that ship.
    #[arg(long, value_name = "DIR")]
    binaries: Option<PathBuf>,
    /// Archive to write [default: target/dist/ipamd-VERSION.oci.tar].
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Arguments {
    /// Arguments for the programs of a directory and for the path of the archive.
    pub(crate) const fn of(binaries: PathBuf, output: PathBuf) -> Self {
        Self { binaries: Some(binaries), output: Some(output) }
    }
}

/// Name of the archive of this version.
pub(crate) fn archive_name() -> String {
    format!("{NAME}-{}.oci.tar", env!("CARGO_PKG_VERSION"))
}

/// Builds the programs unless a directory is specified, and writes the archive.
pub(crate) fn write(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let binaries = match &arguments.binaries {
        Some(dir) => dir.clone(),
        None => {
            binaries::build(workspace)?;
            workspace.dist()
        }
    };
    let output = arguments.output.clone().unwrap_or_else(|| workspace.dist().join(archive_name()));
    refuse_dynamic(&binaries)?;
    write_archive(workspace, &binaries, &output, 9)?;
    println!("containerd: ctr --namespace k8s.io images import {}", output.display());
    Ok(())
}

/// Writes the archive of built programs, with the libraries that dynamic ones need.
pub(crate) fn write_archive(
    workspace: &Workspace,
    binaries: &Path,
    output: &Path,
    compression: u32,
) -> Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    let time = time(&workspace.root)?;
    let image = Image {
        version: version.to_owned(),
        revision: git(&workspace.root, &["rev-parse", "HEAD"])?,
        time,
        created: rfc3339(time)?,
        compression,
        libraries: ipam_image::libraries(binaries)?,
        licences: licences::tree(&workspace.root)?,
    };
    let archive = image.archive(binaries)?;
    std::fs::write(output, &archive).with_context(|| format!("can't write {}", output.display()))?;
    println!("{}: {NAME}:{version}, {} KiB", output.display(), archive.len() >> 10);
    Ok(())
}

/// Refuses dynamic programs, because the empty image has no loader for them.
fn refuse_dynamic(binaries: &Path) -> Result<()> {
    let libraries = ipam_image::libraries(binaries)?;
    match libraries.first() {
        None => Ok(()),
        Some(library) => bail!(
            "the programs in {} need {} and others; build static ones: cargo xtask build",
            binaries.display(),
            library.display()
        ),
    }
}

/// Time of the environment, or of the newest commit.
pub(crate) fn time(root: &Path) -> Result<u64> {
    let text = match std::env::var(TIME) {
        Ok(text) => text,
        Err(_) => git(root, &["log", "-1", "--format=%ct"])?,
    };
    text.parse().with_context(|| format!("{text:?} is no number of seconds ({TIME})"))
}

fn git(root: &Path, words: &[&str]) -> Result<String> {
    let output = Command::new("git").args(words).current_dir(root).output().context("can't start git")?;
    if !output.status.success() {
        bail!("git {} failed: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Formats a time in UTC, as the labels of images require.
fn rfc3339(seconds: u64) -> Result<String> {
    let days = i64::try_from(seconds / 86_400)?;
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    // Days since 0000-03-01, in years that begin in March: the leap day is the last of a year.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    Ok(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_795_132_800, "2026-11-20T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(seconds).unwrap(), text);
        }
    }
}
