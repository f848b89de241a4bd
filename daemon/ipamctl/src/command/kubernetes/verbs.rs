//! Verbs of Kubernetes.

use clap::Subcommand;

use super::api::ApiArguments;
use super::{join_tokens, secrets};
use crate::client::session::Session;
use crate::output::error::Failure;

pub(crate) const EXAMPLES: &str = "Examples:
  ipamctl kubernetes secrets --domain ipamd.svc --member ipamd-0 --member ipamd-1 --member ipamd-2
  ipamctl kubernetes join-tokens --realm prod-eu";

/// Verbs of Kubernetes.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Create the Secrets with the CA and the certificates of members; existing ones stay as they are
    #[command(after_help = "Examples:
  ipamctl kubernetes secrets --domain ipamd.svc --member ipamd-0 --member ipamd-1 --member ipamd-2
  ipamctl kubernetes secrets --member n1 --api-server http://127.0.0.1:8001 --secrets-in ipamd-system")]
    Secrets {
        #[command(flatten)]
        api: ApiArguments,
        #[command(flatten)]
        arguments: secrets::SecretsArguments,
    },
    /// Create join tokens for the nodes of the cluster that have not joined, in a Secret for their agents
    #[command(after_help = "Examples:
  ipamctl kubernetes join-tokens --realm prod-eu
  ipamctl kubernetes join-tokens --dry-run")]
    JoinTokens {
        #[command(flatten)]
        api: ApiArguments,
    },
}

impl Verb {
    /// True if the command sends no request to ipamd.
    pub(crate) fn is_offline(&self) -> bool {
        matches!(self, Verb::Secrets { .. })
    }
}

/// Runs a verb.
pub(crate) async fn run(session: &Session, verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Secrets { api, arguments } => secrets::run(session, &api, &arguments).await,
        Verb::JoinTokens { api } => join_tokens::run(session, &api).await,
    }
}
