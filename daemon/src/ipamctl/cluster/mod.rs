//! `ipamctl cluster`: what concerns the members rather than the addresses.

mod backup;
mod ca;
mod certificates;

use clap::Subcommand;

use crate::context::Context;
use crate::fail::Failure;

pub(crate) const EXAMPLES: &str = "Examples:
  ipamctl cluster backup prod.ipamd
  ipamctl cluster ca init ./ca
  ipamctl cluster ca issue ./ca member n1 --address 10.0.0.1";

/// What to do with the cluster.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Certificates for members, clients and nodes; asks no server
    #[command(after_help = ca::EXAMPLES)]
    Ca {
        #[command(subcommand)]
        verb: ca::Verb,
    },
    /// Write all of the state into one file, or check such a file
    #[command(after_help = backup::EXAMPLES)]
    Backup(backup::BackupArguments),
}

impl Verb {
    /// Whether it is done here alone.
    pub(crate) fn asks_nobody(&self) -> bool {
        match self {
            Verb::Ca { .. } => true,
            Verb::Backup(arguments) => arguments.verify,
        }
    }
}

/// Runs a verb.
pub(crate) async fn run(context: &Context, verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Ca { verb } => ca::run(context, verb),
        Verb::Backup(arguments) => backup::run(context, &arguments).await,
    }
}
