//! `ipamctl token`: what callers show to say who they are.
//!
//! **Invariant:** a secret is written once, where somebody asked for it: into a file, or to standard output.

mod secret;
#[cfg(test)]
mod tests;
mod view;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use ipam_api::Name;
use ipam_api::access::{NodeKey, Role};
use ipam_api::client::Call;
use ipam_api::selector::Selector;
use ipam_api::token::{Purpose, Token, TokenRequest};

use crate::confirm;
use crate::context::Context;
use crate::exchange::Again;
use crate::fail::Failure;
use crate::list::Listing;
use crate::output::text::{milliseconds, parse_duration};
use crate::resource;
use crate::watch::{self, WatchArguments, Watched};
use secret::Destination;

pub(crate) const EXAMPLES: &str = "Examples:
  ipamctl token create ci --role operator --ttl 30d --to-file ci.token
  ipamctl token list
  ipamctl token rotate ci --to-file ci.token --yes";

/// Where tokens are.
const PATH: &str = "/v1/tokens";

/// What to do with tokens.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// All tokens, without their secrets
    #[command(alias = "ls", after_help = "Examples:\n  ipamctl token list\n  ipamctl token list -o json")]
    List,
    /// One token, without its secret
    #[command(alias = "describe", after_help = "Examples:\n  ipamctl token show ci")]
    Show {
        /// Its name
        name: Name,
    },
    /// What happens to tokens, or to one of them, until Ctrl-C; never their secrets
    #[command(after_help = "Examples:\n  ipamctl token watch\n  ipamctl token watch ci -o json")]
    Watch(WatchArguments),
    /// Make a token; its secret is shown this once
    #[command(after_help = "Examples:
  ipamctl token create ci --role operator --ttl 30d --to-file ci.token
  ipamctl token create web-team --role operator --only-realm prod-eu -l team=web
  ipamctl token create worker-3 --role node --node prod-eu/worker-3 --to-file worker-3.token")]
    Create(CreateArguments),
    /// Give a token another secret; the old one is worth nothing any more
    #[command(after_help = "Examples:\n  ipamctl token rotate ci --to-file ci.token --yes")]
    Rotate {
        /// Its name
        name: Name,
        #[command(flatten)]
        destination: DestinationArguments,
    },
    /// Delete a token; whoever uses it is no longer let in
    #[command(
        alias = "rm",
        after_help = "Examples:\n  ipamctl token delete ci\n  ipamctl token delete ci --yes"
    )]
    Delete {
        /// Its name
        name: Name,
    },
    /// Make a token with which one node gets its own; it works once
    #[command(after_help = "Examples:
  ipamctl token join --ttl 1h --to-file join.token
  ipamctl token join --ttl 1h --node prod-eu/worker-3")]
    Join(JoinArguments),
    /// Make a token with which one new member joins the cluster; it works once
    #[command(after_help = "Examples:\n  ipamctl token member --ttl 1h --to-file join.token")]
    Member(MemberArguments),
}

/// What its bearer may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RoleArgument {
    // Reads everything but tokens
    Viewer,
    // Also changes resources and allocates
    Operator,
    // Everything
    Admin,
    // A node's agent or plugin
    Node,
}

impl From<RoleArgument> for Role {
    fn from(argument: RoleArgument) -> Self {
        match argument {
            RoleArgument::Viewer => Role::Viewer,
            RoleArgument::Operator => Role::Operator,
            RoleArgument::Admin => Role::Admin,
            RoleArgument::Node => Role::Node,
        }
    }
}

/// A new token.
#[derive(Debug, Args)]
pub(crate) struct CreateArguments {
    /// Its name, by which history knows who uses it
    name: Name,
    /// What it may: viewer reads, operator changes and allocates, admin may all, node is one node's agent
    #[arg(long, value_enum)]
    role: RoleArgument,
    /// The node that it is for, as REALM/NAME
    #[arg(long, value_name = "REALM/NAME", value_parser = parse_node)]
    node: Option<NodeKey>,
    /// Only endpoints of this realm; may be repeated
    #[arg(long = "only-realm", value_name = "REALM")]
    realms: Vec<Name>,
    /// How long it is good for, as 12h or 30d; for ever without it
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    ttl: Option<Duration>,
    /// A sentence for people
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    #[command(flatten)]
    destination: DestinationArguments,
}

/// A token for a node that is new.
#[derive(Debug, Args)]
pub(crate) struct JoinArguments {
    /// How long it is good for, as 10m or 1h
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "1h")]
    ttl: Duration,
    /// Only nodes of this realm; may be repeated
    #[arg(long = "only-realm", value_name = "REALM")]
    realms: Vec<Name>,
    /// The only node that may use it, as REALM/NAME
    #[arg(long, value_name = "REALM/NAME", value_parser = parse_node)]
    node: Option<NodeKey>,
    #[command(flatten)]
    destination: DestinationArguments,
}

/// A token for a member that is new.
#[derive(Debug, Args)]
pub(crate) struct MemberArguments {
    /// How long it is good for, as 10m or 1h
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "1h")]
    ttl: Duration,
    #[command(flatten)]
    destination: DestinationArguments,
}

/// Where a secret goes.
#[derive(Debug, Args)]
pub(crate) struct DestinationArguments {
    /// Write the secret to this file, which only you can read, and not to the screen
    #[arg(long, value_name = "FILE")]
    to_file: Option<PathBuf>,
}

/// Runs a verb.
pub(crate) async fn run(context: &Context, verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Watch(arguments) => watch::run(context, Watched::Named("token"), &arguments).await,
        Verb::List => {
            let listing = Listing {
                path: PATH,
                filters: context.narrowed("tokens", &[])?,
                name: |token: &Token| token.name.to_string(),
                table: view::table,
                words: ("token", "tokens"),
            };
            context.show_list(listing, |_| true).await
        }
        Verb::Show { name } => {
            let answer = match context.read(&path(&name)).await {
                Ok(answer) => answer,
                Err(failure) => {
                    return Err(resource::suggest(context, failure, "tokens", name.as_str()).await);
                }
            };
            context.show(&answer, name.as_str(), || Ok(view::shown(&answer.read()?, context.now())))
        }
        Verb::Create(arguments) => create(context, &arguments).await,
        Verb::Rotate { name, destination } => rotate(context, &name, &destination).await,
        Verb::Delete { name } => {
            let summary = [format!("Whoever uses token {name} is no longer let in.")];
            confirm::moderate(context, &summary, &format!("Delete token {name}?")).await?;
            match context.write(Call::delete(path(&name)), Again::ByKey).await {
                Ok(answer) => {
                    let sentence = format!("token {name} {}", context.tense("deleted"));
                    context.done(&answer, name.as_str(), &sentence)
                }
                Err(failure) => Err(resource::suggest(context, failure, "tokens", name.as_str()).await),
            }
        }
        Verb::Join(arguments) => join(context, &arguments).await,
        Verb::Member(arguments) => member(context, &arguments).await,
    }
}

fn path(name: &Name) -> String {
    format!("{PATH}/{name}")
}

async fn create(context: &Context, arguments: &CreateArguments) -> Result<(), Failure> {
    let request = TokenRequest {
        name: arguments.name.clone(),
        purpose: Purpose::Bearer,
        role: arguments.role.into(),
        node: arguments.node.clone(),
        realms: arguments.realms.clone(),
        labels: context.reading.selector.clone().unwrap_or_default(),
        ttl_ms: arguments.ttl.map(milliseconds),
        description: arguments.description.clone().unwrap_or_default(),
    };
    make(context, &request, &arguments.destination).await
}

async fn join(context: &Context, arguments: &JoinArguments) -> Result<(), Failure> {
    // Nobody uses its name again: what is made with it has a name of its own.
    let suffix: String = crate::identity::new_key().chars().skip(16).collect();
    let request = TokenRequest {
        name: format!("join-{suffix}").parse()?,
        purpose: Purpose::Join,
        role: Role::Node,
        node: arguments.node.clone(),
        realms: arguments.realms.clone(),
        labels: Selector::default(),
        ttl_ms: Some(milliseconds(arguments.ttl)),
        description: String::new(),
    };
    make(context, &request, &arguments.destination).await
}

async fn member(context: &Context, arguments: &MemberArguments) -> Result<(), Failure> {
    let suffix: String = crate::identity::new_key().chars().skip(16).collect();
    let request = TokenRequest {
        name: format!("member-{suffix}").parse()?,
        purpose: Purpose::JoinMember,
        role: Role::Node,
        node: None,
        realms: Vec::new(),
        labels: Selector::default(),
        ttl_ms: Some(milliseconds(arguments.ttl)),
        description: String::new(),
    };
    make(context, &request, &arguments.destination).await
}

async fn make(
    context: &Context,
    request: &TokenRequest,
    destination: &DestinationArguments,
) -> Result<(), Failure> {
    let name = &request.name;
    let destination = Destination::open(context, destination.to_file.as_deref())?;
    let call = Call::post(PATH).json(request)?;
    // A repetition can't say the secret again: nobody keeps it.
    let repeat = format!(
        "ipamctl token show {name}   (if it is there, its secret is lost: ipamctl token rotate {name})"
    );
    let answer = context.write(call, Again::Same(repeat)).await?;
    let sentence = format!("token {name} {}{}", context.tense("created"), context.at_revision(&answer));
    destination.deliver(context, name, &answer, &sentence)
}

async fn rotate(context: &Context, name: &Name, to: &DestinationArguments) -> Result<(), Failure> {
    let summary = [format!("Whoever uses token {name} needs the new secret from then on.")];
    confirm::moderate(context, &summary, &format!("Give token {name} another secret?")).await?;
    let destination = Destination::open(context, to.to_file.as_deref())?;
    let repeat = "the same command again; the last secret that was shown is the good one".to_owned();
    let written = context.write(Call::post(format!("{}/rotate", path(name))), Again::Same(repeat)).await;
    let answer = match written {
        Ok(answer) => answer,
        Err(failure) => return Err(resource::suggest(context, failure, "tokens", name.as_str()).await),
    };
    let sentence = format!("token {name} {}{}", context.tense("rotated"), context.at_revision(&answer));
    destination.deliver(context, name, &answer, &sentence)
}

/// Reads `REALM/NAME`.
fn parse_node(text: &str) -> Result<NodeKey, String> {
    let (realm, name) = text
        .split_once('/')
        .ok_or_else(|| format!("{} is no node; write REALM/NAME", ipam_api::name::shown(text)))?;
    let refused = |problem: ipam_api::Problem| problem.detail;
    Ok(NodeKey { realm: realm.parse().map_err(refused)?, name: name.parse().map_err(refused)? })
}
