//! `cargo xtask dev`: builds ipamd, ipamctl and ipam-cni, and runs `ipamd dev`.

use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, anyhow};

use crate::binaries;
use crate::workspace::Workspace;

/// Options of `ipamd dev`. They are declared here too, so that a wrong one is refused before the build.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Verify the cluster, stop, and exit with 0, or with 1 and the reason.
    #[arg(long)]
    check: bool,
    /// Data directory to keep [default: a temporary one].
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
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
    let mut command = Command::new(&ipamd);
    command.arg("dev");
    if arguments.check {
        command.arg("--check");
    }
    if let Some(dir) = &arguments.keep {
        command.arg("--keep").arg(dir);
    }
    let error = command.exec();
    Err(anyhow!(error).context(format!("can't start {}", ipamd.display())))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        arguments: super::Arguments,
    }

    #[test]
    fn a_wrong_option_is_refused_before_the_build() {
        let parsed = |option| Command::try_parse_from(["dev", option]).map(|command| command.arguments.check);
        assert!(parsed("--check").unwrap());
        assert_eq!(parsed("--chek").unwrap_err().kind(), clap::error::ErrorKind::UnknownArgument);
    }
}
