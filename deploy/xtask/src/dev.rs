//! `cargo xtask dev`: builds ipamd, ipamctl and ipam-cni, and runs `ipamd dev`.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::{Result, anyhow};

use crate::binaries;
use crate::workspace::Workspace;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Passed on to `ipamd dev`: `--check` verifies, stops and exits; `--keep DIR` keeps the data.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    rest: Vec<OsString>,
}

/// Builds, then becomes `ipamd dev`, so that Ctrl-C and the exit code are its own.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    println!("building ipamd, ipamctl and ipam-cni; the first time this takes four minutes on two cores");
    println!(
        "then starting a three-node cluster on this machine that gives a network interface its address\n"
    );
    let ipamd = binaries::build_quickly(workspace, binaries::PROGRAMS)?.join("ipamd");
    println!();
    // `ipamd dev` finds the plugin next to its own executable.
    let error = Command::new(&ipamd).arg("dev").args(&arguments.rest).exec();
    Err(anyhow!(error).context(format!("can't start {}", ipamd.display())))
}
