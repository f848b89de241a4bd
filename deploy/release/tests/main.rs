//! Checks of the release artifacts that `cargo xtask test --only release` writes, with Debian's tools. They
//! need root.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "these are tests"
)]

mod artifacts;
mod boot;
mod cluster;
mod documents;
mod host;
mod install;
mod kernel;
mod linking;
mod rpm;
mod supervision;
mod units;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Checkout.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A folder that the stage has prepared.
fn prepared(variable: &str) -> PathBuf {
    let named = std::env::var_os(variable);
    PathBuf::from(
        named.unwrap_or_else(|| panic!("{variable} is not set; run: cargo xtask test --only release")),
    )
}

/// Folder of the artifacts.
fn artifacts() -> PathBuf {
    prepared("IPAMD_ARTIFACTS")
}

/// Artifact with an end of its name.
fn artifact(end: &str) -> PathBuf {
    let mut files = std::fs::read_dir(artifacts()).unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| path.to_str().unwrap().ends_with(end)).unwrap_or_else(|| panic!("no artifact {end}"))
}

/// The file of a package.
fn package(name: &str) -> PathBuf {
    package_in(&artifacts(), name)
}

/// The file of a package in a folder of artifacts.
fn package_in(folder: &Path, name: &str) -> PathBuf {
    let begins = format!("{name}_");
    let mut files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_package = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(&begins);
    files.find(is_package).unwrap_or_else(|| panic!("no package {name}"))
}

/// Output of a program, both streams in one text.
fn text(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

/// Runs a program that must succeed; returns its output.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", text(&output));
    text(&output)
}
