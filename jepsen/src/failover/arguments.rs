//! Options of the comparison, and the function that runs it.

use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow};
use tokio::signal::unix::{SignalKind, signal};

use super::etcd::Etcd;
use super::ipamd::Ipamd;
use super::rounds::{Fault, round};
use super::system::System;
use super::table::Table;
use crate::live::run::IdleMeter;

/// Options of a comparison.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Directory with the unpacked etcd, or none to measure ipamd alone.
    #[arg(long)]
    etcd: Option<PathBuf>,
    /// Leaders that are killed, and leaders that are paused, of each system.
    #[arg(long, default_value_t = 20)]
    rounds: usize,
    /// Clients that write with pauses of 20 ms.
    #[arg(long, default_value_t = 4)]
    clients: usize,
    /// The ipamd to measure.
    #[arg(long, default_value = "target/dist/ipamd")]
    ipamd: PathBuf,
}

/// Kills and pauses leaders of both systems in turn, and prints the gaps; false if an outage never ended.
///
/// # Errors
/// An error if a run is not possible: a missing program, or a cluster that doesn't start.
pub fn run(arguments: &Arguments) -> Result<bool> {
    // reqwest is built without a crypto provider in this workspace, and needs one even for plain HTTP.
    let _installed_before = std::sync::Arc::unwrap_or_clone(ipam_api::tls::provider()).install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        // A dropped run kills its processes.
        tokio::select! {
            done = compare(arguments) => done,
            _ = interrupt.recv() => Err(anyhow!("interrupted")),
            _ = terminate.recv() => Err(anyhow!("terminated")),
        }
    })
}

async fn compare(arguments: &Arguments) -> Result<bool> {
    let ipamd = std::fs::canonicalize(&arguments.ipamd)
        .with_context(|| format!("no {}; first: cargo xtask build", arguments.ipamd.display()))?;
    let dir = tempfile::TempDir::with_prefix("ipam-jepsen-").context("no place for temporary files")?;
    let mut systems: Vec<Box<dyn System>> = vec![Box::new(Ipamd::start(&dir.path().join("ipamd"), ipamd)?)];
    if let Some(unpacked) = &arguments.etcd {
        systems.push(Box::new(Etcd::start(&dir.path().join("etcd"), unpacked)?));
    }
    for system in &mut systems {
        system.prepare().await.with_context(|| format!("{} does not start", system.name()))?;
    }
    let idle = IdleMeter::begin();
    let mut table = Table::default();
    for number in 1..=arguments.rounds {
        for fault in Fault::ALL {
            for system in &mut systems {
                let gap = round(&mut **system, fault, arguments.clients).await?;
                eprintln!("round {number}: {} {}: {:.2} s", system.name(), fault.name(), gap.as_secs_f64());
                table.add(system.name(), fault, gap);
            }
        }
    }
    print!("{}", table.shown());
    println!("CPUs idle: {} %", idle.percent());
    Ok(table.is_whole())
}
