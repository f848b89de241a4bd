//! `ipamctl node`: hosts, with the labels that pools select.

use clap::Subcommand;
use ipam_api::resource::{Node, NodeStatus};
use ipam_api::time::Timestamp;
use serde_json::json;

use crate::client::resource;
use crate::client::resource_type::{Read, with_defaults};
use crate::client::scope::Part;
use crate::client::session::Session;
use crate::command::arguments::{Described, NamedInRealm};
use crate::command::metadata::{MetadataArguments, MetadataChanges};
use crate::command::node_gone;
use crate::command::node_remove::{self, RemoveArguments};
use crate::command::watch::{self, WatchArguments, Watched};
use crate::output::error::Failure;
use crate::output::table::Table;
use crate::output::text;

pub(crate) const EXAMPLES: &str = "Examples:
  ipamctl node list
  ipamctl node create worker-3 --label zone=a";

/// Verbs of nodes.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// List nodes, optionally of one --realm
    #[command(
        alias = "ls",
        after_help = "Examples:\n  ipamctl node list\n  ipamctl node list --realm prod-eu -o json"
    )]
    List,
    /// Show a node
    #[command(
        alias = "describe",
        after_help = "Examples:\n  ipamctl node show worker-3\n  ipamctl node show prod-eu/worker-3"
    )]
    Show(NamedInRealm),
    /// Follow changes of nodes until Ctrl-C
    #[command(after_help = "Examples:\n  ipamctl node watch\n  ipamctl node watch worker-3")]
    Watch(WatchArguments),
    /// Create the description of a node
    #[command(after_help = "Examples:
  ipamctl node create worker-3 --label zone=a --label rack=12
  ipamctl node create prod-eu/worker-3 --label zone=a")]
    Create(Described<NamedInRealm, MetadataArguments>),
    /// Change the description of a node
    #[command(after_help = "Examples:\n  ipamctl node set worker-3 --label zone=b --label rack-")]
    Set(Described<NamedInRealm, MetadataChanges>),
    /// Delete a node with the report of its agent; its allocations remain
    #[command(alias = "rm", after_help = "Examples:\n  ipamctl node delete worker-3")]
    Delete(NamedInRealm),
    /// State that a node is gone for good, and reclaim its attached allocations
    #[command(
        after_help = "The addresses become free for other endpoints. Held addresses stay, and those of \
            sticky endpoints are kept for them. The servers refuse this (in-use) while the agent of the node \
            is alive.

Examples:
  ipamctl node gone prod-eu/worker-17 --dry-run
  ipamctl node gone prod-eu/worker-17 --yes"
    )]
    Gone(NamedInRealm),
    /// Delete a node that leaves for good, and with --release all addresses of its host
    #[command(
        after_help = "The addresses are those of the endpoints host/REALM/*/NAME, in all namespaces, and \
            of the attachments on the node. Each is released by the id of its allocation, so a repeated \
            command continues. Without --release a node with addresses is not removed.

Examples:
  ipamctl node remove db-07 --release --dry-run
  ipamctl node remove db-07 --release --dry-run -o json
  ipamctl node remove db-07 --release --from db-07.json
  ipamctl node remove prod-eu/db-07 --release --yes"
    )]
    Remove(RemoveArguments),
}

/// Runs a verb.
pub(crate) async fn run(session: &Session, verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Watch(arguments) => watch::run(session, Watched::Named("node"), &arguments).await,
        Verb::List => {
            let filters = session.narrowed("nodes", &[Part::Realm])?;
            let keep = |found: &Read<Node>| session.said.fits_realm(&found.spec.realm);
            resource::show_list(session, filters, keep, table).await
        }
        Verb::Show(NamedInRealm { name }) => resource::show(session, session.in_realm(&name)?, shown).await,
        Verb::Create(Described { named, metadata }) => {
            let Some((realm, name)) = session.in_realm(&named.name)?.parts() else { return Ok(()) };
            let mut node: Node = with_defaults(json!({"realm": realm, "name": name}))?;
            metadata.apply(&mut node)?;
            resource::create(session, &node).await
        }
        Verb::Set(Described { named, metadata }) => {
            let name = session.in_realm(&named.name)?;
            resource::edit::<Node>(session, &name, |node, _| metadata.apply(node)).await
        }
        Verb::Delete(NamedInRealm { name }) => {
            resource::delete::<Node>(session, &session.in_realm(&name)?, false).await
        }
        Verb::Gone(NamedInRealm { name }) => node_gone::run(session, &name).await,
        Verb::Remove(arguments) => node_remove::run(session, &arguments).await,
    }
}

fn table(nodes: &[Read<Node>], _wide: bool, _now: Timestamp) -> Table {
    Table::of(nodes)
        .text("NAME", |found| &found.spec.name)
        .spare("REALM", 1, |found| &found.spec.realm)
        .text("LABELS", |found| text::labels(&found.spec.labels))
        .text("READY", |found| readiness(&found.status))
        .spare("AGENT", 4, |found| {
            text::or_dash(found.status.agent.as_ref().map(|agent| &agent.agent_version))
        })
        .spare("BOOT", 3, |found| text::or_dash(found.status.boot_id.as_ref()))
        .spare("DESCRIPTION", 2, |found| text::dash(&found.spec.description))
        .table()
}

fn shown(node: &Read<Node>) -> String {
    let mut fields = resource::heading(node, None);
    let boot = node.status.boot_id.as_deref();
    fields.line("boot", boot.unwrap_or("no request received yet").to_owned());
    fields.line("ready", readiness(&node.status));
    if let Some(agent) = &node.status.agent {
        fields.line("agent", format!("{}, heard at {}", agent.agent_version, agent.heard_at));
    }
    resource::metadata_lines(&mut fields, node);
    fields.text()
}

/// Readiness according to the node's agent, with the reason if it isn't ready.
fn readiness(status: &NodeStatus) -> String {
    match &status.agent {
        None => "-".to_owned(),
        Some(agent) if agent.ready => "yes".to_owned(),
        Some(agent) => {
            agent.problem.map_or_else(|| "no".to_owned(), |problem| format!("no ({})", problem.as_str()))
        }
    }
}
