//! `cargo xtask failover`: the time without a leader, of ipamd and of etcd on this machine.
//!
//! etcd is unpacked from its Debian package and never installed: the package would start a service.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::jepsen_program::{Arguments, BENCH};
use crate::workspace::{Workspace, call};
use crate::{binaries, host_tools};

/// Debian package of etcd. Its program needs libc only.
const ETCD: &str = "etcd-server";
/// Path of the program in the package.
const PROGRAM: &str = "usr/bin/etcd";

/// Builds the daemon that ships and the bench, unpacks etcd, and compares them.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    binaries::build(workspace)?;
    let bench = binaries::build_quickly(workspace, &[BENCH])?.join(BENCH);
    let mut command = Command::new(bench);
    command.arg("failover").arg("--ipamd").arg(workspace.dist().join("ipamd"));
    command.arg("--etcd").arg(etcd(workspace)?).args(&arguments.words);
    call(&mut command)
}

/// Unpacks etcd into `target/tools/etcd`, unless it exists.
pub(crate) fn etcd(workspace: &Workspace) -> Result<PathBuf> {
    let home = workspace.target.join("tools/etcd");
    if home.join(PROGRAM).exists() {
        return Ok(home);
    }
    let downloads = workspace.target.join("tools/etcd-downloads");
    host_tools::download(&[ETCD], &downloads)?;
    // etcd is unpacked into a temporary folder, so that an interrupted run leaves no partial copy.
    let aside = workspace.target.join("tools/etcd-new");
    host_tools::clear(&aside)?;
    for package in host_tools::packages(&downloads, 1)? {
        host_tools::unpack(&package, &aside)?;
    }
    host_tools::clear(&home)?;
    fs::rename(aside, &home)?;
    fs::remove_dir_all(&downloads)?;
    Ok(home)
}
