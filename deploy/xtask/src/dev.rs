//! `cargo xtask dev`: builds ipamd, ipamctl and ipam-cni, and runs `ipamd dev`.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, anyhow};

use crate::binaries;
use crate::workspace::Workspace;

const EXAMPLES: &str = "\
Examples:
  cargo xtask dev               a cluster that runs until Ctrl-C
  cargo xtask dev --check       the same, verified and stopped again
  cargo xtask dev --keep DIR    a cluster whose data remain for the next start";

/// Options of `ipamd dev`. They are declared here too, so that a wrong one is refused before the build.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Verify the cluster, stop, and exit with 0, or with 1 and the reason.
    #[arg(long)]
    check: bool,
    /// Data directory to keep [default: a temporary one].
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

impl Arguments {
    /// The options as `ipamd dev` has them.
    fn words(&self) -> Vec<&OsStr> {
        let check = self.check.then_some(OsStr::new("--check"));
        let keep = self.keep.iter().flat_map(|dir| [OsStr::new("--keep"), dir.as_os_str()]);
        check.into_iter().chain(keep).collect()
    }
}

/// Builds, then becomes `ipamd dev`, so that Ctrl-C and the exit code are its own.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    println!("building ipamd, ipamctl and ipam-cni; the first time this takes five minutes on two cores");
    println!(
        "then starting a three-node cluster on this machine that gives a network interface its address\n"
    );
    let ipamd = binaries::build_quickly(workspace, binaries::PROGRAMS)?.join("ipamd");
    println!();
    // `ipamd dev` finds the plugin next to its own executable.
    let mut command = Command::new(&ipamd);
    command.arg("dev").args(arguments.words());
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

    #[test]
    fn each_option_is_passed_on() {
        for words in [vec![], vec!["--check"], vec!["--keep", "a b"], vec!["--check", "--keep", "c"]] {
            let parsed = Command::try_parse_from(["dev"].iter().chain(&words)).unwrap();
            assert_eq!(parsed.arguments.words(), words);
        }
    }
}
