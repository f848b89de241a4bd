//! The project's own tools: `cargo xtask bench | build | chart | commits | costs | dev | dist | failover |
//! image | jepsen | measure | powercut | slow-disks | test`.
//!
//! **Invariant:** nothing that ships depends on this crate. A tool that is missing fails the stage that needs
//! it, with the command to install it, or a check of this crate replaces it and reports so; nothing is left
//! out in silence.

mod bench;
mod binaries;
mod clients;
mod commits;
mod contract;
mod costs;
mod cycles;
mod deny;
mod dependencies;
mod dev;
mod dist;
mod failover;
mod features;
mod host_tools;
mod image;
mod imports;
mod jepsen;
mod jepsen_program;
mod kubernetes;
mod map;
mod monitoring;
mod packages;
mod powercut;
mod prose;
mod python;
mod release;
mod stage;
mod suites;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::workspace::Workspace;

/// The project's own tools.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Build the programs, then measure ipamd beside etcd, host-local and an older build.
    Bench(bench::Arguments),
    /// Make the binaries that ship, static and optimised, in target/dist.
    Build,
    /// Write the Helm chart anew, from the Kubernetes manifests.
    Chart,
    /// Check the messages of the newest commits; `cargo xtask test` does the same.
    Commits,
    /// Count instructions and heap blocks of state machine and codecs, against the recorded counts.
    Costs,
    /// Build quickly, then run `ipamd dev`: three members on this machine, and a real address.
    Dev(dev::Arguments),
    /// Write all release artifacts: tarball, Debian packages, container image, bill of materials, checksums.
    Dist(dist::Arguments),
    /// Write the container image as one OCI archive, without a registry and without root.
    Image(image::Arguments),
    /// Build what is needed, then inject faults into clusters of real processes, and check the histories.
    Jepsen(jepsen::Arguments),
    /// Measure parts that the bench does not measure: the state machine, probes, calls of Meridio's clients.
    Measure {
        /// Instead, measure ADD through macvlan with and without probes, in network namespaces.
        #[arg(long)]
        probes: bool,
        /// Instead, measure calls of Meridio's clients beside the same requests over REST.
        #[arg(long, conflicts_with = "probes")]
        meridio: bool,
    },
    /// Build what is needed, then cut the power of members under load, and say what they lost.
    Powercut(jepsen_program::Arguments),
    /// Build what is needed, then kill leaders of clusters on slow disks, and measure the gaps.
    SlowDisks(jepsen_program::Arguments),
    /// Build what is needed, then kill and pause leaders of ipamd and of etcd, and compare the gaps.
    Failover(jepsen_program::Arguments),
    /// Everything that must hold before a change goes in: packages, format, lints, docs, every test.
    Test(test::Arguments),
}

fn main() -> ExitCode {
    let done = Workspace::find().and_then(|workspace| match Arguments::parse().task {
        Task::Bench(arguments) => bench::run(&workspace, &arguments),
        Task::Build => binaries::build(&workspace).map(|_| ()),
        Task::Chart => kubernetes::write_chart(&workspace),
        Task::Commits => commits::run(&workspace.root),
        Task::Costs => costs::test(&workspace),
        Task::Dev(arguments) => dev::run(&workspace, &arguments),
        Task::Dist(arguments) => dist::write(&workspace, &arguments),
        Task::Image(arguments) => image::write(&workspace, &arguments),
        Task::Jepsen(arguments) => jepsen::build_and_run(&workspace, &arguments),
        Task::Measure { probes: true, .. } => binaries::measure(&workspace, &binaries::PROBES),
        Task::Measure { meridio: true, .. } => binaries::measure(&workspace, &binaries::MERIDIO),
        Task::Measure { .. } => binaries::measure(&workspace, &binaries::MACHINE),
        Task::Powercut(arguments) => powercut::build_and_run(&workspace, powercut::POWERCUT, &arguments),
        Task::SlowDisks(arguments) => powercut::build_and_run(&workspace, powercut::SLOW_DISKS, &arguments),
        Task::Failover(arguments) => failover::run(&workspace, &arguments),
        Task::Test(arguments) => test::run(workspace, &arguments),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
