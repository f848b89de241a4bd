//! `ipam-jepsen`: breaks clusters of real daemons on purpose.
//!
//! It ends with 0 if all promises were kept, with 1 if one was broken, and with 2 if it couldn't find out.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use ipam_jepsen::{powercut, slow_disks};

/// Breaks clusters of real ipamd processes on purpose, and says what they lost.
#[derive(Debug, Parser)]
#[command(name = "ipam-jepsen", arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Cuts the power of members under load, and holds what is left against what was acknowledged.
    Powercut(powercut::Arguments),
    /// Kills leaders of clusters on slow disks, and measures the time to the next accepted write.
    SlowDisks(slow_disks::Arguments),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().task {
        Task::Powercut(arguments) => powercut::run(&arguments),
        Task::SlowDisks(arguments) => slow_disks::run(&arguments),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("ipam-jepsen: {error:#}");
            ExitCode::from(2)
        }
    }
}
