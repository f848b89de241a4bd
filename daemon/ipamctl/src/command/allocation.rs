//! `ipamctl allocation`: single addresses and who holds them.

use clap::{Args, Subcommand};
use ipam_api::resource::{Allocation, EndpointKey};
use ipam_api::time::Timestamp;
use ipam_api::{Name, ObjectName};

use crate::client::list::Listing;
use crate::client::scope::Part;
use crate::client::session::Session;
use crate::command::arguments::Numbered;
use crate::command::watch::{self, WatchArguments, Watched};
use crate::command::{bulk, release, who_has};
use crate::output::error::Failure;
use crate::output::table::Table;
use crate::output::text::{self, Fields};

pub(crate) const EXAMPLES: &str = "Examples:
  ipamctl allocation list --pool web
  ipamctl allocation show 48190233
  ipamctl allocation bulk vm/lab/build-0 vm/lab/build-1 --pool lab";

/// Verbs of allocations.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// List allocations, optionally of a subnet, pool, endpoint, node, realm or namespace
    #[command(
        alias = "ls",
        after_help = "Examples:
  ipamctl allocation list --pool web
  ipamctl allocation list --node worker-3 -o json
  ipamctl allocation list --endpoint host/db-07"
    )]
    List(ListArguments),
    /// Show an allocation
    #[command(alias = "describe", after_help = "Examples:\n  ipamctl allocation show 48190233")]
    Show(Numbered),
    /// Follow allocations and releases until Ctrl-C
    #[command(
        after_help = "Examples:\n  ipamctl allocation watch\n  ipamctl allocation watch 48190233 -o json"
    )]
    Watch(WatchArguments),
    /// Release an allocation
    #[command(
        alias = "rm",
        after_help = "Examples:\n  ipamctl allocation delete 48190233\n  ipamctl allocation delete 48190233 --yes"
    )]
    Delete(Numbered),
    /// Allocate addresses to many endpoints, all or none
    Bulk(Box<bulk::BulkArguments>),
    /// Release many allocations, all or none
    Release(bulk::BulkReleaseArguments),
}

/// Filters of the list.
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Only allocations of this subnet
    #[arg(long)]
    subnet: Option<Name>,
    /// Only allocations of this pool
    #[arg(long)]
    pool: Option<Name>,
    /// Only allocations of this endpoint: kind/name, kind/namespace/name or kind/realm/namespace/name
    #[arg(long)]
    endpoint: Option<String>,
    /// Only allocations on this node
    #[arg(long)]
    node: Option<ObjectName>,
}

/// Runs a verb.
pub(crate) async fn run(session: &Session, verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Watch(arguments) => watch::run(session, Watched::Allocation, &arguments).await,
        Verb::List(arguments) => list(session, &arguments).await,
        Verb::Show(Numbered { id }) => {
            let answer = session.read(&format!("/v1/allocations/{id}")).await?;
            session.check_placed(&format!("allocation {id}"), "allocations", &answer.body)?;
            session.show(&answer.body, &id.to_string(), || Ok(shown(&answer.read()?, session.now())))
        }
        Verb::Delete(Numbered { id }) => release::allocation(session, id).await,
        Verb::Bulk(arguments) => bulk::allocate(session, &arguments).await,
        Verb::Release(arguments) => bulk::release(session, &arguments).await,
    }
}

async fn list(session: &Session, arguments: &ListArguments) -> Result<(), Failure> {
    let endpoint: Option<EndpointKey> =
        arguments.endpoint.as_deref().map(|text| session.endpoint_key(text)).transpose()?;
    let keep = |allocation: &Allocation| {
        arguments.subnet.as_ref().is_none_or(|subnet| *subnet == allocation.subnet)
            && arguments.pool.as_ref().is_none_or(|pool| *pool == allocation.pool)
            && endpoint.as_ref().is_none_or(|endpoint| *endpoint == allocation.endpoint)
            && arguments.node.as_ref().is_none_or(|node| allocation.node.as_ref() == Some(node))
            && session.fits_network(&allocation.network)
            && session.said.fits_realm(&allocation.endpoint.realm)
            && session.said.fits_namespace(&allocation.endpoint.namespace)
    };
    let mut filters = session.narrowed("allocations", &[Part::Network, Part::Realm, Part::Namespace])?;
    filters.extend(arguments.subnet.iter().map(|subnet| ("subnet", subnet.to_string())));
    filters.extend(arguments.pool.iter().map(|pool| ("pool", pool.to_string())));
    filters.extend(endpoint.iter().map(|endpoint| ("endpoint", endpoint.to_string())));
    filters.extend(arguments.node.iter().map(|node| ("node", node.to_string())));
    let name = |one: &Allocation| one.id.to_string();
    session.show_list(Listing { words: ("allocation", "allocations"), filters, name, table }, keep).await
}

fn table(allocations: &[Allocation], wide: bool, now: Timestamp) -> Table {
    Table::of(allocations)
        .number("ID", |one| one.id)
        .text("ADDRESS", |one| one.address.addr())
        .text("HOLDER", |one| &one.endpoint)
        .spare("INTERFACE", 3, |one| &one.interface)
        .spare("POOL", 1, |one| &one.pool)
        .spare("NODE", 2, |one| text::or_dash(one.node.as_ref()))
        .spare("LIFECYCLE", 4, |one| one.lifecycle)
        .spare("AGE", 5, |one| text::age(one.created_at, now))
        .only_if(wide)
        .spare("NETWORK", 6, |one| &one.network)
        .spare("SUBNET", 7, |one| &one.subnet)
        .spare("CHECKED", 8, |one| if one.checked { "yes" } else { "no" })
        .spare("BY", 9, |one| text::dash(&one.created_by))
        .spare("STATION", 10, |one| text::or_dash(one.station.as_ref()))
        .spare("COLLIDING", 11, |one| text::or_dash(one.colliding.as_ref()))
        .table()
}

fn shown(allocation: &Allocation, now: Timestamp) -> String {
    let mut fields = Fields::default();
    fields.line("allocation", allocation.id);
    fields.line("address", allocation.address);
    fields.line(
        "from",
        format!("pool {}   subnet {}   network {}", allocation.pool, allocation.subnet, allocation.network),
    );
    fields.line("holder", format!("{}   interface {}", allocation.endpoint, allocation.interface));
    fields.line_if("hostname", allocation.hostname.as_deref().unwrap_or_default());
    fields.line_if("description", &allocation.description);
    fields.line_if("hardware", allocation.mac.as_deref().unwrap_or_default());
    fields.line("node", text::or_dash(allocation.node.as_ref()));
    fields.line("lifecycle", allocation.lifecycle);
    fields.line_if("lease", &text::lease(allocation.lease.as_ref()));
    fields.line("checked", if allocation.checked { "yes: no conflict seen on the link" } else { "no" });
    fields.line_if("on the wire", &who_has::on_the_wire(allocation));
    fields.line("since", text::made(allocation.created_at, &allocation.created_by, now));
    fields.text()
}
