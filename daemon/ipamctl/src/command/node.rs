//! `ipamctl node`: hosts, and by which labels pools know them.

use clap::{Args, Subcommand};
use ipam_api::resource::{Labels, Node, NodeStatus};
use ipam_api::time::Timestamp;

use crate::client::noun::{Noun, Read};
use crate::client::resource;
use crate::client::scope::Part;
use crate::client::session::Session;
use crate::command::metadata::{MetadataArguments, MetadataChanges};
use crate::command::watch::{self, WatchArguments, Watched};
use crate::output::error::Failure;
use crate::output::table::Table;
use crate::output::text::{self, Fields};

pub(crate) const EXAMPLES: &str = "Examples:
  ipamctl node list
  ipamctl node create worker-3 --label zone=a";

/// What to do with nodes.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// All nodes, or those of --realm
    #[command(
        alias = "ls",
        after_help = "Examples:\n  ipamctl node list\n  ipamctl node list --realm prod-eu -o json"
    )]
    List,
    /// One node
    #[command(
        alias = "describe",
        after_help = "Examples:\n  ipamctl node show worker-3\n  ipamctl node show prod-eu/worker-3"
    )]
    Show {
        /// Its name, or realm/name
        name: String,
    },
    /// What happens to nodes, or to one of them, until Ctrl-C
    #[command(after_help = "Examples:\n  ipamctl node watch\n  ipamctl node watch worker-3")]
    Watch(WatchArguments),
    /// Describe a node that nobody has described yet
    #[command(after_help = "Examples:
  ipamctl node create worker-3 --label zone=a --label rack=12
  ipamctl node create prod-eu/worker-3 --label zone=a")]
    Create(CreateArguments),
    /// Change what is said of a node
    #[command(after_help = "Examples:\n  ipamctl node set worker-3 --label zone=b --label rack-")]
    Set(SetArguments),
    /// Forget what was said of a node; what its endpoints hold stays
    #[command(alias = "rm", after_help = "Examples:\n  ipamctl node delete worker-3")]
    Delete {
        /// Its name, or realm/name
        name: String,
    },
}

/// What is said of a node.
#[derive(Debug, Args)]
pub(crate) struct CreateArguments {
    /// Its name, or realm/name
    name: String,
    #[command(flatten)]
    metadata: MetadataArguments,
}

/// What is said of a node from now on.
#[derive(Debug, Args)]
pub(crate) struct SetArguments {
    /// Its name, or realm/name
    name: String,
    #[command(flatten)]
    metadata: MetadataChanges,
}

/// Runs a verb.
pub(crate) async fn run(session: &Session, verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Watch(arguments) => watch::run(session, Watched::Named("node"), &arguments).await,
        Verb::List => {
            let filters = session.narrowed("nodes", &[Part::Realm])?;
            let keep = |found: &Read<Node>| session.said.fits_realm(&found.intention.realm);
            resource::show_list(session, filters, keep, table).await
        }
        Verb::Show { name } => resource::show(session, session.in_realm(&name)?, shown).await,
        Verb::Create(arguments) => {
            let Some((realm, name)) = session.in_realm(&arguments.name)?.parts() else { return Ok(()) };
            let mut node = Node {
                realm,
                name,
                description: String::new(),
                labels: Labels::new(),
                annotations: Labels::new(),
                managed_by: None,
            };
            arguments.metadata.apply(&mut node)?;
            resource::create(session, &node).await
        }
        Verb::Set(arguments) => {
            let change = |node: &mut Node, _: &NodeStatus| arguments.metadata.apply(node);
            resource::edit::<Node>(session, &session.in_realm(&arguments.name)?, change).await
        }
        Verb::Delete { name } => resource::delete::<Node>(session, &session.in_realm(&name)?, false).await,
    }
}

fn table(nodes: &[Read<Node>], _wide: bool, _now: Timestamp) -> Table {
    let mut table =
        Table::new().text("NAME").spare("REALM", 1).text("LABELS").spare("BOOT", 3).spare("DESCRIPTION", 2);
    for node in nodes {
        let intention = &node.intention;
        table.row([
            intention.name.to_string(),
            intention.realm.to_string(),
            text::labels(&intention.labels),
            text::dash(node.status.boot_id.as_deref().unwrap_or_default()),
            text::dash(&intention.description),
        ]);
    }
    table
}

fn shown(node: &Read<Node>) -> String {
    let intention = &node.intention;
    let mut fields = Fields::default();
    let name = intention.name();
    fields.raw(&text::heading("node", name.as_str(), &node.meta, None));
    let boot = node.status.boot_id.as_deref();
    fields.line("boot", boot.unwrap_or("it has not asked for anything yet").to_owned());
    resource::metadata_lines(&mut fields, node);
    fields.text()
}
