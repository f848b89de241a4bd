//! `cargo xtask failover`: the time without a leader, of ipamd and of etcd on this machine.
//!
//! etcd is unpacked from its Debian package and never installed: the package would start a service.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::workspace::{Workspace, call};
use crate::{binaries, host_tools};

/// Arguments of the bench, after those that name the programs.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Arguments {
    /// Arguments of the bench; --help lists them.
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

/// The program that measures.
const BENCH: &str = "ipam-jepsen";
/// Debian package of etcd. It needs libc alone.
const ETCD: &str = "etcd-server";
/// Program in it.
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

/// Unpacks etcd into `target/tools/etcd`, unless it is there.
pub(crate) fn etcd(workspace: &Workspace) -> Result<PathBuf> {
    let home = workspace.target.join("tools/etcd");
    if home.join(PROGRAM).exists() {
        return Ok(home);
    }
    let downloads = workspace.target.join("tools/etcd-downloads");
    host_tools::download(&[ETCD], &downloads)?;
    // Unpacked aside, so that an interrupted run leaves no half.
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
