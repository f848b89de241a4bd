//! Verbs of tokens.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use ipam_api::Name;
use ipam_api::access::{NodeKey, Role};
use ipam_api::client::Call;
use ipam_api::selector::Selector;
use ipam_api::token::{Purpose, Token, TokenRequest};

use super::secret::Destination;
use super::view;
use crate::client::list::Listing;
use crate::client::requests::Again;
use crate::client::session::Session;
use crate::client::{confirm, resource};
use crate::command::arguments::{Named, one_of};
use crate::command::watch::{self, WatchArguments, Watched};
use crate::output::error::Failure;
use crate::output::text::{milliseconds, parse_duration};
use crate::settings::idempotency;

pub(crate) const EXAMPLES: &str = "Examples:
  ipamctl token create ci --role operator --ttl 30d --to-file ci.token
  ipamctl token list
  ipamctl token rotate ci --to-file ci.token --yes";

/// Path of tokens in the API.
pub(crate) const PATH: &str = "/v1/tokens";

/// Verbs of tokens.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// List tokens, without their secrets
    #[command(alias = "ls", after_help = "Examples:\n  ipamctl token list\n  ipamctl token list -o json")]
    List,
    /// Show a token, without its secret
    #[command(alias = "describe", after_help = "Examples:\n  ipamctl token show ci")]
    Show(Named),
    /// Follow changes of tokens until Ctrl-C, without their secrets
    #[command(after_help = "Examples:\n  ipamctl token watch\n  ipamctl token watch ci -o json")]
    Watch(WatchArguments),
    /// Create a token; its secret is shown only once
    #[command(after_help = "Examples:
  ipamctl token create ci --role operator --ttl 30d --to-file ci.token
  ipamctl token create web-team --role operator --only-realm prod-eu -l team=web
  ipamctl token create worker-3 --role node --node prod-eu/worker-3 --to-file worker-3.token")]
    Create(CreateArguments),
    /// Replace the secret of a token; the old secret is revoked
    #[command(after_help = "Examples:\n  ipamctl token rotate ci --to-file ci.token --yes")]
    Rotate {
        /// Name
        name: Name,
        #[command(flatten)]
        destination: DestinationArguments,
    },
    /// Renew the node token that authenticates this command
    #[command(
        after_help = "Only node tokens obtained by joining can be renewed. Run this command from a timer on the node, well before the token expires.

Examples:
  ipamctl token renew --token-file /etc/ipamd/node.token"
    )]
    Renew,
    /// Delete a token; requests with it are rejected
    #[command(
        alias = "rm",
        after_help = "Examples:\n  ipamctl token delete ci\n  ipamctl token delete ci --yes"
    )]
    Delete(Named),
    /// Create a single-use token with which a node obtains its own token
    #[command(
        visible_alias = "node",
        after_help = "Examples:
  ipamctl token join --ttl 1h --to-file join.token
  ipamctl token join --ttl 1h --node prod-eu/worker-3
  ipamctl token join --ttl 1h --node prod-eu/worker-3 --replace"
    )]
    Join(JoinArguments),
    /// Create a single-use token with which a new member joins the cluster
    #[command(after_help = "Examples:\n  ipamctl token member --ttl 1h --to-file join.token")]
    Member(MemberArguments),
}

/// A new token.
#[derive(Debug, Args)]
pub(crate) struct CreateArguments {
    /// Name, recorded in the history for requests with this token
    name: Name,
    /// Role: viewer reads, operator changes and allocates, admin has all rights, node is a node's agent
    #[arg(long, value_parser = one_of::<Role, 4>(Role::ALL.map(Role::as_str)))]
    role: Role,
    /// Node of the token, as REALM/NAME
    #[arg(long, value_name = "REALM/NAME", value_parser = parse_node)]
    node: Option<NodeKey>,
    /// Restrict to endpoints of this realm; may be repeated
    #[arg(long = "only-realm", value_name = "REALM")]
    realms: Vec<Name>,
    /// With --only-realm: also write networks, subnets, pools and reservations, which realms share
    #[arg(long, requires = "realms")]
    allow_shared: bool,
    /// Validity, such as 12h or 30d [default: unlimited]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    ttl: Option<Duration>,
    /// Description
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    #[command(flatten)]
    destination: DestinationArguments,
}

/// A token for a node that is new.
#[derive(Debug, Args)]
pub(crate) struct JoinArguments {
    /// Validity, such as 10m or 1h
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "1h")]
    ttl: Duration,
    /// Restrict to nodes of this realm; may be repeated
    #[arg(long = "only-realm", value_name = "REALM")]
    realms: Vec<Name>,
    /// Restrict to this node, as REALM/NAME
    #[arg(long, value_name = "REALM/NAME", value_parser = parse_node)]
    node: Option<NodeKey>,
    /// Revoke existing tokens of the node when it joins; without this flag, a node with a token cannot join
    #[arg(long, requires = "node")]
    replace: bool,
    #[command(flatten)]
    destination: DestinationArguments,
}

/// A token for a member that is new.
#[derive(Debug, Args)]
pub(crate) struct MemberArguments {
    /// Validity, such as 10m or 1h
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "1h")]
    ttl: Duration,
    #[command(flatten)]
    destination: DestinationArguments,
}

/// Destination of a secret.
#[derive(Debug, Args)]
pub(crate) struct DestinationArguments {
    /// Write the secret to this file, with mode 0600, instead of the terminal
    #[arg(long, value_name = "FILE")]
    to_file: Option<PathBuf>,
}

/// Runs a verb.
pub(crate) async fn run(session: &Session, verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Watch(arguments) => watch::run(session, Watched::Named("token"), &arguments).await,
        Verb::List => {
            let (filters, table) = (session.narrowed("tokens", &[])?, view::table as fn(&_, _, _) -> _);
            let name = |token: &Token| token.name.to_string();
            session.show_list(Listing { words: ("token", "tokens"), filters, name, table }, |_| true).await
        }
        Verb::Show(Named { name }) => {
            let answer = session.read(&path(&name)).await;
            let answer = resource::suggest(session, answer, "tokens", name.as_str()).await?;
            session.show(&answer.body, name.as_str(), || Ok(view::shown(&answer.read()?, session.now())))
        }
        Verb::Create(arguments) => create(session, &arguments).await,
        Verb::Renew => renew(session).await,
        Verb::Rotate { name, destination } => rotate(session, &name, &destination).await,
        Verb::Delete(Named { name }) => {
            let summary = [format!("Requests with token {name} are rejected from then on.")];
            confirm::moderate(session, &summary, &format!("Delete token {name}?")).await?;
            let deleted = session.write(Call::delete(path(&name)), Again::ByKey).await;
            let answer = resource::suggest(session, deleted, "tokens", name.as_str()).await?;
            session.done(&answer, name.as_str(), &format!("token {name} {}", session.tense("deleted")))
        }
        Verb::Join(arguments) => join(session, &arguments).await,
        Verb::Member(arguments) => member(session, &arguments).await,
    }
}

fn path(name: &Name) -> String {
    format!("{PATH}/{name}")
}

async fn create(session: &Session, arguments: &CreateArguments) -> Result<(), Failure> {
    let request = TokenRequest {
        node: arguments.node.clone(),
        realms: arguments.realms.clone(),
        labels: session.reading.selector.clone().unwrap_or_default(),
        allow_shared: arguments.allow_shared,
        description: arguments.description.clone().unwrap_or_default(),
        ..request(arguments.name.clone(), Purpose::Bearer, arguments.role, arguments.ttl)
    };
    make(session, &request, &arguments.destination).await
}

async fn join(session: &Session, arguments: &JoinArguments) -> Result<(), Failure> {
    let request = TokenRequest {
        node: arguments.node.clone(),
        replace: arguments.replace,
        realms: arguments.realms.clone(),
        ..request(once("join")?, Purpose::Join, Role::Node, Some(arguments.ttl))
    };
    make(session, &request, &arguments.destination).await
}

async fn member(session: &Session, arguments: &MemberArguments) -> Result<(), Failure> {
    let request = request(once("member")?, Purpose::JoinMember, Role::Node, Some(arguments.ttl));
    make(session, &request, &arguments.destination).await
}

/// Random name of a single-use token. Users don't type it: the node or member has a name of its own.
pub(crate) fn once(word: &str) -> Result<Name, Failure> {
    let suffix: String = idempotency::new_key().chars().skip(16).collect();
    Ok(format!("{word}-{suffix}").parse()?)
}

/// Request for a token without limits.
pub(crate) fn request(name: Name, purpose: Purpose, role: Role, ttl: Option<Duration>) -> TokenRequest {
    TokenRequest {
        name,
        purpose,
        role,
        node: None,
        replace: false,
        realms: Vec::new(),
        labels: Selector::default(),
        allow_shared: false,
        ttl_ms: ttl.map(milliseconds),
        description: String::new(),
    }
}

async fn make(
    session: &Session,
    request: &TokenRequest,
    destination: &DestinationArguments,
) -> Result<(), Failure> {
    let name = &request.name;
    let destination = Destination::open(session, destination.to_file.as_deref())?;
    let call = Call::post(PATH).json(request)?;
    // A repetition can't show the secret again: only its hash is stored.
    let repeat = format!(
        "ipamctl token show {name}   (if it exists, its secret is lost: ipamctl token rotate {name})"
    );
    let answer = session.write(call, Again::Same(repeat)).await?;
    let sentence = format!("token {name} {}{}", session.tense("created"), session.at_revision(&answer));
    destination.deliver(session, name, &answer, &sentence)
}

async fn renew(session: &Session) -> Result<(), Failure> {
    let answer = session.write(Call::post(format!("{PATH}/self/renew")), Again::ByKey).await?;
    let token: Option<Token> = if session.writing.dry_run { None } else { Some(answer.read()?) };
    let (name, until) = match &token {
        Some(token) => (token.name.to_string(), view::expires(token, session.now())),
        None => ("of this node".to_owned(), "after its whole time".to_owned()),
    };
    session.done(&answer, &name, &format!("token {name} {}; it expires {until}", session.tense("renewed")))
}

async fn rotate(session: &Session, name: &Name, to: &DestinationArguments) -> Result<(), Failure> {
    let summary = [format!("Clients with token {name} need the new secret from then on.")];
    confirm::moderate(session, &summary, &format!("Give token {name} another secret?")).await?;
    let destination = Destination::open(session, to.to_file.as_deref())?;
    let repeat = "run the same command again; only the last secret shown is valid".to_owned();
    let written = session.write(Call::post(format!("{}/rotate", path(name))), Again::Same(repeat)).await;
    let answer = resource::suggest(session, written, "tokens", name.as_str()).await?;
    let sentence = format!("token {name} {}{}", session.tense("rotated"), session.at_revision(&answer));
    destination.deliver(session, name, &answer, &sentence)
}

/// Reads `REALM/NAME`.
fn parse_node(text: &str) -> Result<NodeKey, String> {
    let (realm, name) = text
        .split_once('/')
        .ok_or_else(|| format!("{} is not a node; write REALM/NAME", ipam_api::name::shown(text)))?;
    let refused = |problem: ipam_api::Problem| problem.detail;
    Ok(NodeKey { realm: realm.parse().map_err(refused)?, name: name.parse().map_err(refused)? })
}
