//! `ipamd recover`: backup of a surviving member after the loss of the majority.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use ipam_api::time::Timestamp;
use ipam_raft::{Recovered, StoreError, Survivor};

use crate::config::data_dir;

/// Flags of `ipamd recover`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ipamd recover survivor.ipamd --data-dir /var/lib/ipamd\n  ipamd recover survivor.ipamd --data-dir /var/lib/ipamd --confirm CLUSTER-ID\n\nFor a permanent loss of the majority. Writes a backup of the state of this stopped member, for `ipamd restore`,\nand changes nothing else. Entries that only the lost members had are lost."
)]
pub struct Arguments {
    /// Backup file to write.
    file: PathBuf,
    /// Data directory of the member, which must be stopped.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Configuration file that names the data directory.
    #[arg(long, value_name = "FILE", conflicts_with = "data_dir")]
    config: Option<PathBuf>,
    /// Include only the most recent part of the event history.
    #[arg(long)]
    without_history: bool,
    /// Confirm with the ID of the cluster whose majority is lost, where there is no terminal.
    #[arg(long, value_name = "CLUSTER-ID")]
    confirm: Option<String>,
}

/// Runs `ipamd recover`.
#[must_use]
pub fn main(arguments: &Arguments) -> ExitCode {
    let code = match run(arguments) {
        Ok(text) => {
            say(&text);
            0
        }
        Err((error, code)) => {
            say(&format!("ipamd: {error}"));
            code
        }
    };
    ExitCode::from(code)
}

fn run(arguments: &Arguments) -> Result<String, (String, u8)> {
    let failed = |error: StoreError| (error.to_string(), 1);
    let dir = data_dir(arguments.data_dir.as_deref(), arguments.config.as_deref());
    let dir = dir.map_err(|error| (error.to_string(), 2))?;
    let survivor = Survivor::hold(&dir).map_err(failed)?;
    confirm(arguments, &survivor)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| (error.to_string(), 1))?;
    let export = survivor.export(&arguments.file, !arguments.without_history, Timestamp::now());
    let recovered = runtime.block_on(export).map_err(failed)?;
    Ok(told(arguments, &recovered))
}

/// Asks for the cluster's id as confirmation.
fn confirm(arguments: &Arguments, survivor: &Survivor) -> Result<(), (String, u8)> {
    let cluster = survivor.cluster();
    say(&format!(
        "This takes what member {} of cluster {cluster} has on its disk, to begin another cluster with it.\n\
         What only the lost members had is lost. If a majority of the members can still be started, start them instead,\n\
         and never start any of the old ones beside the new cluster: it would be two.",
        survivor.name()
    ));
    let given = match &arguments.confirm {
        Some(given) => given.clone(),
        None if std::io::stdin().is_terminal() => {
            say(&format!("Type the cluster's id {cluster} to go on:"));
            let mut line = String::new();
            std::io::stdin().read_line(&mut line).map_err(|error| (error.to_string(), 1))?;
            line.trim().to_owned()
        }
        None => {
            return Err((
                format!("no terminal for a confirmation prompt; repeat with --confirm {cluster}"),
                2,
            ));
        }
    };
    if given == cluster {
        return Ok(());
    }
    Err((format!("{} is not the cluster's id; nothing was written", ipam_api::name::shown(&given)), 2))
}

fn told(arguments: &Arguments, Recovered { header, unknown }: &Recovered) -> String {
    let file = arguments.file.display();
    format!(
        "written {file}: revision {} of epoch {}, {} allocations, {} pools\n\
         {unknown} entries of its log were not known to be acknowledged; they are in it, too\n\
         next: ipamd restore {file} --data-dir EMPTY-DIR, and start the other members with empty data directories",
        header.revision, header.epoch, header.counts.allocations, header.counts.pools
    )
}

fn say(text: &str) {
    crate::screen::err(&format!("{text}\n"));
}
