//! Plan of a lab: its size, programs and options.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// Paths of the programs under test.
#[derive(Debug, Clone)]
pub struct Programs {
    /// Path of `ipamd`.
    pub ipamd: PathBuf,
    /// Path of `ipam-agent`.
    pub ipam_agent: PathBuf,
    /// Path of `ipam-cni`.
    pub ipam_cni: PathBuf,
    /// Path of `ipamctl`.
    pub ipamctl: PathBuf,
}

impl Programs {
    /// Finds all programs in one directory.
    ///
    /// # Errors
    /// If a program is missing; the error names it.
    pub fn in_dir(dir: &Path) -> Result<Self> {
        let find = |name| {
            let path = dir.join(name);
            std::fs::canonicalize(&path).with_context(|| format!("no {}", path.display()))
        };
        Ok(Self {
            ipamd: find("ipamd")?,
            ipam_agent: find("ipam-agent")?,
            ipam_cni: find("ipam-cni")?,
            ipamctl: find("ipamctl")?,
        })
    }

    /// Returns true if members can be upgraded: the shipped program has no options of tests.
    pub(super) async fn know_next_level(&self) -> bool {
        let mut command = tokio::process::Command::new(&self.ipamd);
        command.args(["serve", "--test-option", "next-level", "--help"]);
        command.output().await.is_ok_and(|output| output.status.success())
    }
}

/// Plan of a lab.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Number of founding members, `n1` and so on.
    pub members: usize,
    /// True for TLS on all ports, and tokens.
    pub is_secure: bool,
    /// Seed of the choices of the lab and the network.
    pub seed: u64,
    /// Options of the test build, for all members.
    pub test_options: Vec<String>,
    /// Programs under test.
    pub programs: Programs,
    /// Directory of the run; the logs of processes stay in `logs/`.
    pub dir: PathBuf,
}
