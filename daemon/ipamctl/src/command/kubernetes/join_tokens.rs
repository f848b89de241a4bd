//! `ipamctl kubernetes join-tokens`: join tokens of nodes, in a Secret that their agents mount.

use std::collections::BTreeSet;

use ipam_api::access::{NodeKey, Role};
use ipam_api::client::Call;
use ipam_api::name::{Name, ObjectName};
use ipam_api::token::{Purpose, Token, TokenRequest};

use super::api::{Api, ApiArguments};
use crate::client::requests::Again;
use crate::client::session::Session;
use crate::command::token;
use crate::output::error::Failure;

/// Secret with one join token for each node that has not joined, by the name of the node.
const SECRET: &str = "ipam-agent-join";
/// Maximum number of new tokens per run, so that they fit into the Secret.
const TOKENS_MAX: usize = 1000;
/// Validity of a join token in milliseconds. Later runs replace tokens that were not used.
const VALIDITY_MS: u64 = 3_600_000;

/// Changes of the Secret.
#[derive(Debug, Default, PartialEq, Eq)]
struct Plan {
    /// Nodes that need a token.
    create: Vec<ObjectName>,
    /// Keys that no agent needs any more.
    remove: Vec<String>,
}

/// Runs the command.
pub(super) async fn run(session: &Session, api: &ApiArguments) -> Result<(), Failure> {
    let api = Api::of(session, api)?;
    let realm = session.settings.realm.clone();
    let nodes = api.nodes().await?;
    let mut secret = api.secret(SECRET).await?;
    let tokens = session.list::<Token>("/v1/tokens", None, |token| token.node.is_some()).await?.items;
    let plan = Plan::of(&nodes, &tokens, &realm, &secret.keys().collect());
    let summary = format!(
        "{} nodes; {} join tokens created, {} removed",
        nodes.len(),
        plan.create.len(),
        plan.remove.len()
    );
    if session.writing.dry_run {
        session.say(&format!("a dry run: {summary}"));
        return Ok(());
    }
    for name in &plan.create {
        secret.set(
            name.as_str(),
            &join_token(session, NodeKey { realm: realm.clone(), name: name.clone() }).await?,
        );
    }
    plan.remove.iter().for_each(|key| secret.remove(key));
    if plan != Plan::default() {
        api.replace(SECRET, &secret).await?;
    }
    session.say(&summary);
    Ok(())
}

impl Plan {
    fn of(nodes: &[String], tokens: &[Token], realm: &Name, keys: &BTreeSet<&str>) -> Self {
        let has = |node: &ObjectName, purpose: Purpose| {
            let is_of = |key: &NodeKey| key.realm == *realm && key.name == *node;
            tokens.iter().any(|token| {
                token.purpose == purpose && !token.status.used && token.node.as_ref().is_some_and(is_of)
            })
        };
        let (mut create, mut wanted) = (Vec::new(), BTreeSet::new());
        // Names of nodes are valid in ipamd: both kinds of names are subdomains of at most 253 characters.
        for node in nodes.iter().filter_map(|name| ObjectName::new(name).ok()) {
            if has(&node, Purpose::Bearer) {
                continue;
            }
            let is_waiting = keys.contains(node.as_str()) && has(&node, Purpose::Join);
            wanted.insert(node.to_string());
            if !is_waiting && create.len() < TOKENS_MAX {
                create.push(node);
            }
        }
        let remove = keys.iter().filter(|key| !wanted.contains(**key)).map(|key| (*key).to_owned()).collect();
        Self { create, remove }
    }
}

/// Secret of a new join token.
async fn join_token(session: &Session, node: NodeKey) -> Result<String, Failure> {
    let request = TokenRequest {
        node: Some(node),
        ttl_ms: Some(VALIDITY_MS),
        ..token::request(token::once("join")?, Purpose::Join, Role::Node, None)
    };
    // A token whose answer was lost expires unused.
    let again = Again::Same("ipamctl kubernetes join-tokens".to_owned());
    let token: Token = session.write(Call::post(token::PATH).json(&request)?, again).await?.read()?;
    token.secret.ok_or_else(|| Failure::usage("the answer has no secret", "Repeat the command."))
}
