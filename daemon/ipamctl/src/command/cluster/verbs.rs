//! Verbs of the cluster.

use clap::Subcommand;
use ipam_api::Name;

use super::{backup, ca, epoch, members};
use crate::client::session::Session;
use crate::output::error::Failure;

pub(crate) const EXAMPLES: &str = "Examples:
  ipamctl cluster members
  ipamctl cluster transfer-leader n2 --dry-run
  ipamctl cluster backup prod.ipamd
  ipamctl cluster replace n3 n4 --dry-run
  ipamctl cluster ca init ./ca";

/// Verbs of the cluster.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// List the members with role, lag and reachability
    #[command(after_help = "Examples:\n  ipamctl cluster members\n  ipamctl cluster members -o json")]
    Members,
    /// Transfer leadership to a voter; to the most up-to-date one by default
    #[command(after_help = "Examples:
  ipamctl cluster transfer-leader
  ipamctl cluster transfer-leader n2 --dry-run")]
    TransferLeader {
        /// Member to become the leader
        name: Option<Name>,
    },
    /// Promote a learner to voter once it has caught up
    #[command(after_help = "Examples:\n  ipamctl cluster promote n4\n  ipamctl cluster promote n4 --dry-run")]
    Promote {
        /// Learner to promote
        name: Name,
    },
    /// Remove a member, reachable or not; a leader transfers leadership first
    #[command(after_help = "Examples:
  ipamctl cluster remove n3 --dry-run
  ipamctl cluster remove n3 --confirm n3")]
    Remove {
        /// Member to remove
        name: Name,
    },
    /// Replace a member with a learner, in one membership change
    #[command(after_help = "Examples:
  ipamctl cluster replace n3 n4 --dry-run
  ipamctl cluster replace n3 n4 --yes")]
    Replace {
        /// Member to remove
        old: Name,
        /// Learner that replaces it; must have joined already
        new: Name,
    },
    /// Issue certificates for members, clients and nodes; works offline
    #[command(subcommand, after_help = ca::EXAMPLES)]
    Ca(ca::Verb),
    /// Back up the state to a file, or verify a backup file
    #[command(after_help = backup::EXAMPLES)]
    Backup(backup::BackupArguments),
    /// Show the state after a restore and the pools that await confirmation
    #[command(after_help = epoch::EXAMPLES)]
    Epoch {
        #[command(subcommand)]
        verb: Option<epoch::Verb>,
    },
}

impl Verb {
    /// True if the command sends no request to a server.
    pub(crate) fn is_offline(&self) -> bool {
        match self {
            Verb::Ca(_) => true,
            Verb::Backup(arguments) => arguments.verify,
            _ => false,
        }
    }
}

/// Runs a verb.
pub(crate) async fn run(session: &Session, verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Members => members::list(session).await,
        Verb::TransferLeader { name } => members::transfer_leader(session, name).await,
        Verb::Promote { name } => members::promote(session, &name).await,
        Verb::Remove { name } => members::remove(session, &name).await,
        Verb::Replace { old, new } => members::replace(session, &old, new).await,
        Verb::Ca(verb) => ca::run(session, verb),
        Verb::Backup(arguments) => backup::run(session, &arguments).await,
        Verb::Epoch { verb } => epoch::run(session, verb).await,
    }
}
