//! Options of the load generator and of the comparison, and the functions that run both.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::compare::{Judgement, Measurement, Plan, compare, judge, shown, write_charts};
use super::lab::{Lab, Programs, Subject};
use super::load::{Times, closed, open};
use super::workload::Workload;

/// Options of a bench.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, clap::Subcommand)]
enum Task {
    /// Measure all systems in alternating rounds, and print the ratios with their bars.
    Compare(CompareArguments),
    /// Run one workload on a cluster of three members, and print its figures.
    Run(RunArguments),
    /// List the measurements of a comparison.
    List,
}

#[derive(Debug, clap::Args)]
struct ProgramArguments {
    /// Directory with ipamd, ipam-agent and ipam-cni.
    #[arg(long, default_value = "target/dist")]
    bin_dir: PathBuf,
    /// Directory with the unpacked etcd.
    #[arg(long)]
    etcd: Option<PathBuf>,
    /// Write all figures and histograms to a file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Directory for the data of all systems, which should be on a disk [default: one for temporary files].
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct CompareArguments {
    #[command(flatten)]
    programs: ProgramArguments,
    /// Directory with the programs of an older build.
    #[arg(long, value_name = "DIR")]
    against: Option<PathBuf>,
    /// Use tiny sizes and one round, to see that the comparison works.
    #[arg(long)]
    quick: bool,
    /// Alternating rounds [default: 5, with --quick 1].
    #[arg(long)]
    rounds: Option<usize>,
    /// Addresses of the large state [default: 1,000,000, with --quick 10,000].
    #[arg(long)]
    held: Option<u64>,
    /// Make these measurements only; `bench list` lists all.
    #[arg(long, value_delimiter = ',', value_name = "MEASUREMENT,…")]
    only: Vec<String>,
    /// Write a chart of each measurement into a directory.
    #[arg(long, value_name = "DIR")]
    charts: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct RunArguments {
    #[command(flatten)]
    programs: ProgramArguments,
    /// Operations of the clients.
    workload: Workload,
    /// Clients, each with a connection of its own.
    #[arg(long, default_value_t = 64)]
    clients: usize,
    /// Operations per second in an open loop; without it each client waits for its answers.
    #[arg(long)]
    rate: Option<u32>,
    /// Seconds that are measured, after one second of load.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Load etcd with the counterpart of the workload.
    #[arg(long, requires = "etcd")]
    on_etcd: bool,
}

/// Runs the selected task; returns false if a measurement failed.
///
/// # Errors
/// An error if a run is not possible: a missing program, or a cluster that doesn't start.
pub fn run(arguments: &Arguments) -> Result<bool> {
    // reqwest is built without a crypto provider in this workspace, and needs one even for plain HTTP.
    let _installed_before = std::sync::Arc::unwrap_or_clone(ipam_api::tls::provider()).install_default();
    allow_connections()?;
    // The runtime has one thread, because the load generator shares the cores with the systems.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let task = async {
            match &arguments.task {
                Task::Compare(arguments) => run_comparison(arguments).await,
                Task::Run(arguments) => run_load(arguments).await,
                Task::List => {
                    Measurement::ALL.iter().for_each(|measurement| println!("{}", measurement.name));
                    Ok(true)
                }
            }
        };
        // A dropped run kills its processes.
        tokio::select! {
            done = task => done,
            _ = interrupt.recv() => Err(anyhow!("interrupted")),
            _ = terminate.recv() => Err(anyhow!("terminated")),
        }
    })
}

/// Raises the soft limit of open files to the hard limit, since a burst has a thousand connections.
fn allow_connections() -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?)
}

async fn run_comparison(arguments: &CompareArguments) -> Result<bool> {
    let named = |name: &String| {
        Measurement::named(name).with_context(|| format!("no measurement {name}; bench list lists all"))
    };
    let measurements = match arguments.only.as_slice() {
        [] => Measurement::ALL.to_vec(),
        names => names.iter().map(named).collect::<Result<_>>()?,
    };
    let mut plan = if arguments.quick { Plan::quick() } else { Plan::full() };
    plan.rounds = arguments.rounds.unwrap_or(plan.rounds);
    plan.held = arguments.held.unwrap_or(plan.held);
    let dir = data_dir(&arguments.programs)?;
    let mut lab = lab(dir.path(), &arguments.programs, arguments.against.clone());
    let results = compare(&measurements, &mut lab, plan).await;
    drop(lab);
    let judgements = judge(&results);
    print!("{}", shown(&judgements));
    if let Some(charts) = &arguments.charts {
        write_charts(charts, &results)?;
    }
    if let Some(file) = &arguments.programs.json {
        let rows: Vec<_> = judgements.iter().map(Judgement::json).collect();
        std::fs::write(file, json!({"rows": rows, "results": results.json()}).to_string())?;
    }
    Ok(results.is_whole() && judgements.iter().all(|judgement| judgement.is_met() != Some(false)))
}

async fn run_load(arguments: &RunArguments) -> Result<bool> {
    let subject = if arguments.on_etcd { Subject::Etcd } else { Subject::Ipamd };
    let dir = data_dir(&arguments.programs)?;
    let mut lab = lab(dir.path(), &arguments.programs, None);
    let (clients, processes) = arguments.workload.clients(&mut lab, subject, arguments.clients).await?;
    let times = Times { warm_up: Duration::from_secs(1), measured: Duration::from_secs(arguments.seconds) };
    let load = match arguments.rate {
        Some(rate) => open(clients, rate, times, &processes, std::future::ready(())).await,
        None => closed(clients, times, &processes).await,
    };
    println!("{}", load.shown());
    if let Some(file) = &arguments.programs.json {
        std::fs::write(file, load.json().to_string())?;
    }
    Ok(load.failures == 0)
}

fn data_dir(programs: &ProgramArguments) -> Result<tempfile::TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("ipam-jepsen-");
    let made = match &programs.data_dir {
        Some(dir) => builder.tempdir_in(dir),
        None => builder.tempdir(),
    };
    made.context("no place for the data")
}

fn lab(dir: &Path, programs: &ProgramArguments, against: Option<PathBuf>) -> Lab {
    let (bin_dir, etcd) = (programs.bin_dir.clone(), programs.etcd.clone());
    Lab::new(dir, Programs { bin_dir, against, etcd })
}
