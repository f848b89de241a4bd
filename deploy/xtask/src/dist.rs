//! `cargo xtask dist`: all release artifacts, in `target/dist/release`.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::workspace::{Workspace, call};
use crate::{binaries, image, packages};

/// Program that writes tarball, packages, bill of materials and checksums.
pub(crate) const WRITER: &str = "ipam-release";

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Directory of the artifacts [default: target/dist/release].
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// RPM packages, too; installs rpmbuild if it is missing.
    #[arg(long)]
    rpm: bool,
}

/// Builds the programs, the container image, and all other artifacts.
pub(crate) fn write(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    // The build takes long, so a missing tool is found before it.
    if arguments.rpm {
        packages::ensure_rpm()?;
    }
    binaries::build(workspace)?;
    let output = arguments.output.clone().unwrap_or_else(|| workspace.dist().join("release"));
    std::fs::create_dir_all(&output)?;
    let archive = image::archive_name();
    image::write(workspace, &image::Arguments::of(workspace.dist(), output.join(&archive)))?;
    let mut more = vec!["--also", archive.as_str()];
    if arguments.rpm {
        more.push("--rpm");
    }
    // Built without the features of tests, or the completions would have options that the programs lack.
    let writer = binaries::build_optimised(workspace, WRITER)?;
    artifacts(workspace, &writer, &workspace.dist(), &output, &more)
}

/// Writes the artifacts of built programs with a built writer.
pub(crate) fn artifacts(
    workspace: &Workspace,
    writer: &Path,
    binaries: &Path,
    output: &Path,
    more: &[&str],
) -> Result<()> {
    let mut command = std::process::Command::new(writer);
    command.arg("--root").arg(&workspace.root).arg("--binaries").arg(binaries);
    command.arg("--output").arg(output).args(["--time", &image::time(&workspace.root)?.to_string()]);
    call(command.args(more))
}
