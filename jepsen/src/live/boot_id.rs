//! Boot ids of processes: a process that starts with another boot id sees a reboot.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

/// Options of `unshare` that give a program another boot id; the file of the id and the program follow.
///
/// The shell script binds the file over the kernel's boot id in the new mount namespace.
pub(crate) const WITH_BOOT_ID: [&str; 8] = [
    "--mount",
    "--propagation",
    "slave",
    "--",
    "sh",
    "-c",
    r#"mount --bind "$1" /proc/sys/kernel/random/boot_id && shift && exec "$@""#,
    "sh",
];

/// Writes a new boot id into a file, and returns the id.
pub(crate) fn change(file: &Path) -> Result<String> {
    let id = uuid::Uuid::new_v4().to_string();
    fs::write(file, format!("{id}\n")).context("a boot id can't be written")?;
    Ok(id)
}
