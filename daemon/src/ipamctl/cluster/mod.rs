//! `ipamctl cluster`: what concerns the members rather than the addresses.

mod ca;
mod certificates;

use clap::Subcommand;

use crate::context::Context;
use crate::fail::Failure;

pub(crate) const EXAMPLES: &str = "Examples:
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
}

/// Runs a verb that asks no server.
pub(crate) fn run(context: &Context, verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Ca { verb } => ca::run(context, verb),
    }
}
