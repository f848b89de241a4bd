//! `ipam-jepsen`: breaks clusters of real and of simulated daemons on purpose.
//!
//! The exit code is 0 if all promises were kept, 1 if a promise was broken, and 2 without a verdict.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use ipam_jepsen::command::{Outcome, check, list, live, matrix, preflight, report, sim, soak, suite};
use ipam_jepsen::{bench, failover, powercut, seeded, slow_disks};

/// Breaks clusters of real ipamd processes on purpose, and reports each broken promise.
#[derive(Debug, Parser)]
#[command(name = "ipam-jepsen", arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Run workloads on a cluster of real processes while nemeses inject faults, and check the history.
    Live(live::Arguments),
    /// Make the runs of a campaign that a directory lacks: each nemesis with all workloads.
    Matrix(matrix::Arguments),
    /// Simulate whole runs, each in one thread that its seed determines.
    Sim(sim::Arguments),
    /// Make the simulated run of a directory with a case.
    #[command(hide = true)]
    Simulate {
        /// Directory of the run.
        dir: PathBuf,
        /// Filter of log lines.
        #[arg(long)]
        log: Option<String>,
    },
    /// Make live and simulated runs in turn, for hours; an interrupted soak goes on.
    Soak(soak::Arguments),
    /// Make the short runs of the tests.
    Suite(suite::Arguments),
    /// Check a stored run, on any machine and without root.
    Check(check::Arguments),
    /// Print the figures of all runs below a directory.
    Report(report::Arguments),
    /// List workloads, nemeses and checkers.
    List,
    /// Report the capabilities that runs need and this machine lacks.
    Preflight,
    /// Cut the power of members under load, and compare what is left with what was acknowledged.
    Powercut(powercut::Arguments),
    /// Kill leaders of clusters on slow disks, and measure the time to the next accepted write.
    SlowDisks(slow_disks::Arguments),
    /// Start members and agents with one seeded bug after another. A checker must detect each bug.
    Mutants(seeded::Arguments),
    /// Kill and pause leaders of ipamd and of etcd in turn, and compare the times without accepted writes.
    Failover(failover::Arguments),
    /// Measure ipamd under load, alone or beside etcd, host-local and an older build.
    Bench(bench::Arguments),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().task {
        Task::Live(arguments) => live::run(&arguments),
        Task::Matrix(arguments) => matrix::run(&arguments),
        Task::Sim(arguments) => sim::run(&arguments),
        Task::Simulate { dir, log } => {
            ipam_jepsen::sim::simulate(&dir, log.as_deref()).map(|()| Outcome::Held)
        }
        Task::Soak(arguments) => soak::run(&arguments),
        Task::Suite(arguments) => suite::run(&arguments),
        Task::Check(arguments) => check::run(&arguments),
        Task::Report(arguments) => report::run(&arguments),
        Task::List => Ok(list::run()),
        Task::Preflight => Ok(preflight::run()),
        Task::Powercut(arguments) => powercut::run(&arguments).map(Outcome::of),
        Task::SlowDisks(arguments) => slow_disks::run(&arguments).map(Outcome::of),
        Task::Mutants(arguments) => seeded::run(&arguments),
        Task::Failover(arguments) => failover::run(&arguments).map(Outcome::of),
        Task::Bench(arguments) => bench::run(&arguments).map(Outcome::of),
    };
    match done {
        Ok(outcome) => outcome.into(),
        Err(error) => {
            eprintln!("ipam-jepsen: {error:#}");
            ExitCode::from(Outcome::Undecided.code())
        }
    }
}
