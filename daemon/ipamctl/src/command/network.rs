//! `ipamctl network`: address spaces.

use clap::{Args, Subcommand};
use ipam_api::Name;
use ipam_api::resource::Network;
use ipam_api::time::Timestamp;
use serde_json::json;

use crate::client::resource_type::{Read, with_defaults};
use crate::client::session::Session;
use crate::client::{confirm, resource};
use crate::command::arguments::Named;
use crate::command::map::{self, NetworkMapArguments, count_lines};
use crate::command::metadata::{MetadataArguments, MetadataChanges};
use crate::command::probing::{self, ProbingArguments};
use crate::command::watch::{self, WatchArguments, Watched};
use crate::output::error::Failure;
use crate::output::table::Table;
use crate::output::text;

pub(crate) const EXAMPLES: &str = "Examples:
  ipamctl network list
  ipamctl network create lab --description \"the test lab\"";

/// Verbs of networks.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// List networks
    #[command(alias = "ls", after_help = "Examples:\n  ipamctl network list\n  ipamctl network list -o json")]
    List,
    /// Show a network
    #[command(alias = "describe", after_help = "Examples:\n  ipamctl network show lab")]
    Show(Named),
    /// List the subnets of a network by address, with their counts
    #[command(
        after_help = "Examples:\n  ipamctl network map default\n  ipamctl network map lab --from 10.20.0.0"
    )]
    Map(NetworkMapArguments),
    /// Follow changes of networks until Ctrl-C
    #[command(after_help = "Examples:\n  ipamctl network watch\n  ipamctl network watch blue -o json")]
    Watch(WatchArguments),
    /// Create a network
    #[command(after_help = "Examples:
  ipamctl network create lab --description \"the test lab\"
  ipamctl network create lab --probe-conflicts true")]
    Create(NetworkArguments<MetadataArguments>),
    /// Change a network
    #[command(after_help = "Examples:
  ipamctl network set lab --label site=berlin --label old-
  ipamctl network set lab --probe-conflicts true --probe-gateway true")]
    Set(NetworkArguments<MetadataChanges>),
    /// Delete a network that has no subnets
    #[command(
        alias = "rm",
        after_help = "Examples:\n  ipamctl network delete lab\n  ipamctl network delete lab --confirm lab"
    )]
    Delete(Named),
}

/// A network with its settings.
#[derive(Debug, Args)]
pub(crate) struct NetworkArguments<Metadata: Args> {
    #[command(flatten)]
    named: Named,
    #[command(flatten)]
    probing: ProbingArguments,
    #[command(flatten)]
    metadata: Metadata,
}

/// Runs a verb.
pub(crate) async fn run(session: &Session, verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Watch(arguments) => watch::run(session, Watched::Named("network"), &arguments).await,
        Verb::Map(arguments) => map::run_network(session, &arguments).await,
        Verb::List => resource::show_list(session, session.narrowed("networks", &[])?, |_| true, table).await,
        Verb::Show(Named { name }) => resource::show(session, &name, shown).await,
        Verb::Create(NetworkArguments { named, probing, metadata }) => {
            let mut network: Network = with_defaults(json!({"name": named.name}))?;
            probing.apply(&mut network.probing);
            metadata.apply(&mut network)?;
            resource::create(session, &network).await
        }
        Verb::Set(NetworkArguments { named, probing, metadata }) => {
            let change = |network: &mut Network, _: &_| {
                probing.apply(&mut network.probing);
                metadata.apply(network)
            };
            resource::edit::<Network>(session, &named.name, change).await
        }
        Verb::Delete(Named { name }) => delete(session, &name).await,
    }
}

fn table(networks: &[Read<Network>], _wide: bool, _now: Timestamp) -> Table {
    Table::of(networks)
        .text("NAME", |found| &found.spec.name)
        .number("SUBNETS", |found| text::count(found.status.subnets))
        .number("HELD", |found| text::count(found.status.allocated))
        .spare("LABELS", 2, |found| text::labels(&found.spec.labels))
        .spare("DESCRIPTION", 1, |found| text::dash(&found.spec.description))
        .table()
}

fn shown(network: &Read<Network>) -> String {
    let mut fields = resource::heading(network, None);
    fields.line("subnets", text::count(network.status.subnets));
    fields.line("held", text::plural(network.status.allocated, "address", "addresses"));
    count_lines(&mut fields, &network.status.counts, &text::count(network.status.counts.size), "", true);
    fields.line_if("probes", &probing::shown(&network.spec.probing));
    resource::metadata_lines(&mut fields, network);
    fields.text()
}

async fn delete(session: &Session, name: &Name) -> Result<(), Failure> {
    let (network, _) = resource::fetch::<Network>(session, name).await?;
    let summary = [format!(
        "network {name} has {} and {} held; deletion is irreversible.",
        text::plural(network.status.subnets, "subnet", "subnets"),
        text::plural(network.status.allocated, "address", "addresses"),
    )];
    confirm::severe(session, name.as_str(), &summary).await?;
    resource::delete::<Network>(session, name, false).await
}
