//! `ipamd restore`: a new data directory out of a backup.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use ipam_api::time::Timestamp;
use ipam_raft::{RestoreError, Restored, restore};

use crate::config::data_dir;

/// Flags of `ipamd restore`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ipamd restore prod.ipamd --data-dir /var/lib/ipamd\n  ipamd restore prod.ipamd --config /etc/ipamd/ipamd.toml\n\nRestore on one member; the others start with empty data directories and receive its state. The restored\ncluster has a new epoch, and its pools allocate nothing until they are confirmed:\n  ipamctl cluster epoch confirm"
)]
pub struct Arguments {
    /// Backup file.
    file: PathBuf,
    /// Data directory, which must be empty.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Configuration file that names the data directory.
    #[arg(long, value_name = "FILE", conflicts_with = "data_dir")]
    config: Option<PathBuf>,
    /// Epoch to begin [default: the next one]; use a higher one if that has begun already.
    #[arg(long, value_name = "NUMBER")]
    epoch: Option<u64>,
}

/// Runs `ipamd restore`.
#[must_use]
pub fn main(arguments: &Arguments) -> ExitCode {
    let (text, code) = match run(arguments) {
        Ok((restored, dir)) => (told(&restored, &dir), 0),
        Err((error, code)) => (format!("ipamd: {error}\n"), code),
    };
    crate::screen::err(&text);
    ExitCode::from(code)
}

fn run(arguments: &Arguments) -> Result<(Restored, PathBuf), (String, u8)> {
    let dir = data_dir(arguments.data_dir.as_deref(), arguments.config.as_deref());
    let dir = dir.map_err(|error| (error.to_string(), 2))?;
    match restore(&arguments.file, &dir, arguments.epoch, Timestamp::now().0) {
        Ok(restored) => Ok((restored, dir)),
        Err(error) => {
            let code = if matches!(error, RestoreError::Epoch(_)) { 2 } else { 1 };
            Err((error.to_string(), code))
        }
    }
}

fn told(restored: &Restored, dir: &std::path::Path) -> String {
    let header = &restored.header;
    format!(
        "restored into {}: epoch {}, from revision {} of {} (cluster {})\n\
         {} allocations, {} pools, {} events\n\
         Start this member, and the others with empty data directories: they found a new cluster with it.\n\
         No address is given out until you confirm:\n  \
         ipamctl cluster epoch        shows what waits\n  \
         ipamctl cluster epoch confirm --all --confirm CLUSTER-ID\n",
        dir.display(),
        restored.epoch,
        header.revision,
        header.taken_at,
        header.cluster,
        header.counts.allocations,
        header.counts.pools,
        header.counts.events,
    )
}
