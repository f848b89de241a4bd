//! Plan of a run: all inputs that determine the run.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::checker::Settings;
use crate::nemesis::{self, Fault, Nemesis};
use crate::workload::{self, Workload};

/// Plan of a run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Names of the workloads.
    pub workloads: Vec<String>,
    /// Names of the nemeses; empty for a run without faults.
    pub nemeses: Vec<String>,
    /// Time in which clients work.
    pub time: Duration,
    /// Number of members at the begin.
    pub members: usize,
    /// True with TLS and tokens.
    pub is_secure: bool,
    /// Seed of all choices.
    pub seed: u64,
    /// Directory of the programs under test.
    pub bin_dir: PathBuf,
    /// Options of the test build.
    pub test_options: Vec<String>,
    /// Directory of the stored run.
    pub store: PathBuf,
    /// True without progress lines.
    pub is_quiet: bool,
    /// True for a simulated run.
    pub is_simulated: bool,
    /// Filter of the log lines of simulated members, as `RUST_LOG` has it; none for no log.
    pub log: Option<String>,
    /// Mean pause between two operations of a session.
    pub pace: Duration,
    /// Maximum number of sessions of each workload.
    pub sessions_max: Option<usize>,
    /// Faults instead of those that the nemeses choose, in order.
    pub script: Option<Vec<Step>>,
}

/// Fault of a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Time of its injection since the run began.
    pub at_ms: u64,
    /// The fault.
    pub fault: Fault,
}

impl Plan {
    /// Settings as they are stored.
    #[must_use]
    pub fn settings(&self, version: String, began_at: String) -> Settings {
        Settings {
            seed: self.seed,
            workloads: self.workloads.clone(),
            nemeses: self.nemeses.clone(),
            members: self.members,
            is_secure: self.is_secure,
            is_simulated: self.is_simulated,
            time_ms: u64::try_from(self.time.as_millis()).unwrap_or(u64::MAX),
            test_options: self.test_options.clone(),
            version,
            began_at,
            ..Settings::default()
        }
    }

    /// The workloads, in the order of the registry.
    ///
    /// # Errors
    /// If a name is unknown.
    pub fn chosen_workloads(&self) -> Result<Vec<Box<dyn Workload>>> {
        chosen(workload::all(), |workload| workload.name(), &self.workloads)
    }

    /// The nemeses, in the order of the registry.
    ///
    /// # Errors
    /// If a name is unknown.
    pub fn chosen_nemeses(&self) -> Result<Vec<Box<dyn Nemesis>>> {
        chosen(nemesis::all(), |nemesis| nemesis.name(), &self.nemeses)
    }
}

fn chosen<T>(all: Vec<T>, name: impl Fn(&T) -> &'static str, names: &[String]) -> Result<Vec<T>> {
    let unknown = names.iter().find(|wanted| all.iter().all(|one| name(one) != wanted.as_str()));
    if let Some(unknown) = unknown {
        bail!("{unknown} is unknown; `ipam-jepsen list` shows all names");
    }
    Ok(all.into_iter().filter(|one| names.iter().any(|wanted| wanted == name(one))).collect())
}
