//! `ipam-jepsen live`: one run on a cluster of real processes.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::ArgAction;

use super::{Outcome, judge, names, time};
use crate::live::enter;
use crate::live::run::{self, Plan};

/// Examples in the help.
const EXAMPLES: &str = "\
Examples:
  ipam-jepsen live                                          all workloads and nemeses for a minute
  ipam-jepsen live --nemesis kill,partition --time 5m
  ipam-jepsen live --workload alloc-any,leases --nemesis clock --members 5 --secure
  ipam-jepsen live --seed 7 --store /tmp/run                the choices of another run again
  ipam-jepsen live --nemesis none --time 20s                no faults

Exit codes: 0 all promises kept, 1 a promise broken, 2 undecided: the run was too weak or has failed.";

/// Arguments of the subcommand.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Workloads: all, or names with commas between them.
    #[arg(long, default_value = "all")]
    workload: String,
    /// Nemeses: all, none, or names with commas between them; several alternate and overlap.
    #[arg(long, default_value = "all")]
    nemesis: String,
    /// Time in which clients work under faults.
    #[arg(long, default_value = "60s", value_parser = time::parse)]
    time: Duration,
    /// Members of the cluster.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=5))]
    members: u8,
    /// TLS between clients, agents and members, and tokens.
    #[arg(long)]
    secure: bool,
    /// Seed of all choices; another one each time unless said.
    #[arg(long)]
    seed: Option<u64>,
    /// New directory of the run; below target/jepsen unless said.
    #[arg(long)]
    store: Option<PathBuf>,
    /// Directory with ipamd, ipamctl, ipam-cni and ipam-agent.
    #[arg(long, default_value = "target/debug")]
    bin_dir: PathBuf,
    /// Option of the test build of ipamd, such as a seeded bug; may be repeated.
    #[arg(long, action = ArgAction::Append)]
    test_option: Vec<String>,
    /// The run has a seeded bug: success is that it is found.
    #[arg(long)]
    expect_violation: bool,
    /// No progress lines.
    #[arg(long)]
    quiet: bool,
}

/// Makes the run, checks it and writes the report.
///
/// # Errors
/// If the run can't be made: no rights, a missing program, a full disk.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let plan = plan(arguments)?;
    enter()?;
    run::run(&plan)?;
    let outcome = judge::judge(&plan.store)?;
    println!("{}", plan.store.display());
    Ok(if arguments.expect_violation { outcome.expecting_violation() } else { outcome })
}

fn plan(arguments: &Arguments) -> Result<Plan> {
    let workloads = names::chosen(&arguments.workload, &names::workloads())?;
    if workloads.is_empty() {
        bail!("a run needs a workload");
    }
    let bin_dir = std::fs::canonicalize(&arguments.bin_dir)
        .with_context(|| format!("{}: no programs", arguments.bin_dir.display()))?;
    let seed = arguments.seed.unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().0 >> 32);
    let store = match &arguments.store {
        Some(dir) => dir.clone(),
        None => PathBuf::from("target/jepsen").join(default_name(&arguments.nemesis, seed)),
    };
    Ok(Plan {
        workloads,
        nemeses: names::chosen(&arguments.nemesis, &names::nemeses())?,
        time: arguments.time,
        members: arguments.members.into(),
        is_secure: arguments.secure,
        seed,
        bin_dir,
        test_options: arguments.test_option.clone(),
        store: std::path::absolute(store)?,
        is_quiet: arguments.quiet,
        is_simulated: false,
        log: None,
        sessions_max: None,
        pace: crate::workload::PACE,
        script: None,
    })
}

/// Directory name of a run: its nemesis and seed.
fn default_name(nemesis: &str, seed: u64) -> OsString {
    let nemesis = if nemesis.contains(',') { "mixed" } else { nemesis };
    format!("{nemesis}-{seed}").into()
}
