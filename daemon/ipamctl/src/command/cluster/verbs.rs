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
    /// All members: who votes, who leads, who is behind and who doesn't answer
    #[command(after_help = "Examples:\n  ipamctl cluster members\n  ipamctl cluster members -o json")]
    Members,
    /// Make another voter the leader; the best one if none is named
    #[command(after_help = "Examples:
  ipamctl cluster transfer-leader
  ipamctl cluster transfer-leader n2 --dry-run")]
    TransferLeader {
        /// The member that shall lead
        name: Option<Name>,
    },
    /// Give a learner a vote, once it has caught up
    #[command(after_help = "Examples:\n  ipamctl cluster promote n4\n  ipamctl cluster promote n4 --dry-run")]
    Promote {
        /// The learner
        name: Name,
    },
    /// Remove a member, dead or alive; a leader hands over first
    #[command(after_help = "Examples:
  ipamctl cluster remove n3 --dry-run
  ipamctl cluster remove n3 --confirm n3")]
    Remove {
        /// The member
        name: Name,
    },
    /// Put a learner in the place of a member, in one step
    #[command(after_help = "Examples:
  ipamctl cluster replace n3 n4 --dry-run
  ipamctl cluster replace n3 n4 --yes")]
    Replace {
        /// The member that goes
        old: Name,
        /// The learner that gets its vote; it has joined already
        new: Name,
    },
    /// Certificates for members, clients and nodes; asks no server
    #[command(subcommand, after_help = ca::EXAMPLES)]
    Ca(ca::Verb),
    /// Write all of the state into one file, or check such a file
    #[command(after_help = backup::EXAMPLES)]
    Backup(backup::BackupArguments),
    /// What a restore has begun, and which pools wait to be confirmed
    #[command(after_help = epoch::EXAMPLES)]
    Epoch {
        #[command(subcommand)]
        verb: Option<epoch::Verb>,
    },
}

impl Verb {
    /// True if no server is asked.
    pub(crate) fn asks_nobody(&self) -> bool {
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
