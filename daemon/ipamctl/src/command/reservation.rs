//! `ipamctl reservation`: addresses that no pool ever allocates.

use clap::{Args, Subcommand};
use ipam_api::resource::{EndpointKey, Reservation};
use ipam_api::time::Timestamp;
use ipam_api::{AddressRange, Name};
use serde_json::json;

use crate::client::resource;
use crate::client::resource_type::{Read, with_defaults};
use crate::client::scope::Part;
use crate::client::session::Session;
use crate::command::arguments::{Named, replace};
use crate::command::metadata::{MetadataArguments, MetadataChanges, check_apart};
use crate::command::ranges;
use crate::command::watch::{self, WatchArguments, Watched};
use crate::output::error::Failure;
use crate::output::table::Table;
use crate::output::text;

pub(crate) const EXAMPLES: &str = "Examples:
  ipamctl reservation list
  ipamctl reservation create printers --address 10.10.0.12-10.10.0.19";

/// Verbs of reservations.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// List reservations, optionally of one --network
    #[command(
        alias = "ls",
        after_help = "Examples:\n  ipamctl reservation list\n  ipamctl reservation list -o json"
    )]
    List,
    /// Show a reservation
    #[command(alias = "describe", after_help = "Examples:\n  ipamctl reservation show printers")]
    Show(Named),
    /// Follow changes of reservations until Ctrl-C
    #[command(
        after_help = "Examples:\n  ipamctl reservation watch\n  ipamctl reservation watch printers -o json"
    )]
    Watch(WatchArguments),
    /// Create a reservation
    #[command(after_help = "Examples:
  ipamctl reservation create printers --address 10.10.0.12-10.10.0.19
  ipamctl reservation create routers --address 10.10.0.2 --address 2001:db8:1::2 --network lab
  ipamctl reservation create db-07 --address 192.0.2.7 --endpoint host/db-07")]
    Create(CreateArguments),
    /// Change a reservation
    #[command(
        after_help = "Examples:\n  ipamctl reservation set printers --add 10.10.0.20 --remove 10.10.0.12"
    )]
    Set(SetArguments),
    /// Delete a reservation; its addresses become allocatable again
    #[command(alias = "rm", after_help = "Examples:\n  ipamctl reservation delete printers")]
    Delete(Named),
}

/// A new reservation.
#[derive(Debug, Args)]
pub(crate) struct CreateArguments {
    /// Name
    name: Name,
    /// Address, FIRST-LAST, or CIDR; may be repeated
    #[arg(long = "address", alias = "range", value_name = "RANGE", required = true)]
    addresses: Vec<AddressRange>,
    /// Endpoint that uses the addresses: kind/name, kind/namespace/name or kind/realm/namespace/name
    #[arg(long)]
    endpoint: Option<String>,
    #[command(flatten)]
    metadata: MetadataArguments,
}

/// Changes of a reservation.
#[derive(Debug, Args)]
pub(crate) struct SetArguments {
    /// Name
    name: Name,
    /// Range to add; may be repeated
    #[arg(long, alias = "add-range", value_name = "RANGE")]
    add: Vec<AddressRange>,
    /// Range to remove; may be repeated
    #[arg(long, alias = "remove-range", value_name = "RANGE")]
    remove: Vec<AddressRange>,
    /// Endpoint that uses the addresses
    #[arg(long)]
    endpoint: Option<String>,
    /// Record the addresses for no endpoint
    #[arg(long, conflicts_with = "endpoint")]
    no_endpoint: bool,
    #[command(flatten)]
    metadata: MetadataChanges,
}

impl SetArguments {
    fn apply(&self, endpoint: Option<&EndpointKey>, reservation: &mut Reservation) -> Result<(), Failure> {
        check_apart(("--add", &self.add), ("--remove", &self.remove), ranges::meet)?;
        let kept = ranges::without(&reservation.addresses, &self.remove);
        reservation.addresses = ranges::with(kept, &self.add);
        if reservation.addresses.is_empty() {
            return Err(Failure::usage(
                format!("reservation {} would be empty", self.name),
                format!("Delete it instead: ipamctl reservation delete {}", self.name),
            ));
        }
        replace(&mut reservation.endpoint, endpoint.cloned(), self.no_endpoint);
        self.metadata.apply(reservation)
    }
}

/// Runs a verb.
pub(crate) async fn run(session: &Session, verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Watch(arguments) => watch::run(session, Watched::Named("reservation"), &arguments).await,
        Verb::List => {
            let keep = |found: &Read<Reservation>| session.fits_network(&found.spec.network);
            let filters = session.narrowed("reservations", &[Part::Network])?;
            resource::show_list(session, filters, keep, table).await
        }
        Verb::Show(Named { name }) => resource::show(session, &name, shown).await,
        Verb::Create(arguments) => {
            let (network, addresses) = (session.network_or_default(), arguments.addresses);
            let endpoint = named(session, arguments.endpoint.as_deref())?;
            let fields = json!({"name": arguments.name, "network": network, "addresses": addresses,
                                "endpoint": endpoint});
            let mut reservation: Reservation = with_defaults(fields)?;
            arguments.metadata.apply(&mut reservation)?;
            let created = resource::create(session, &reservation).await;
            resource::suggest(session, created, "networks", reservation.network.as_str()).await
        }
        Verb::Set(arguments) => {
            let endpoint = named(session, arguments.endpoint.as_deref())?;
            let change = |one: &mut Reservation, _: &_| arguments.apply(endpoint.as_ref(), one);
            resource::edit::<Reservation>(session, &arguments.name, change).await
        }
        Verb::Delete(Named { name }) => resource::delete::<Reservation>(session, &name, false).await,
    }
}

fn named(session: &Session, endpoint: Option<&str>) -> Result<Option<EndpointKey>, Failure> {
    endpoint.map(|text| session.endpoint_key(text)).transpose()
}

fn table(reservations: &[Read<Reservation>], _wide: bool, _now: Timestamp) -> Table {
    Table::of(reservations)
        .text("NAME", |found| &found.spec.name)
        .spare("NETWORK", 1, |found| &found.spec.network)
        .text("ADDRESSES", |found| text::joined(&found.spec.addresses))
        .spare("ENDPOINT", 4, |found| text::or_dash(found.spec.endpoint.as_ref()))
        .number("HELD", |found| text::count(found.status.held))
        .spare("LABELS", 3, |found| text::labels(&found.spec.labels))
        .spare("DESCRIPTION", 2, |found| text::dash(&found.spec.description))
        .table()
}

fn shown(reservation: &Read<Reservation>) -> String {
    let spec = &reservation.spec;
    let mut fields = resource::heading(reservation, Some(&spec.network));
    fields.line("addresses", text::joined(&spec.addresses));
    fields.some("endpoint", spec.endpoint.as_ref());
    for address in &reservation.status.conflicts {
        fields.line("CONFLICT", format!("{address} is held by another endpoint   ipamctl who-has {address}"));
    }
    if reservation.status.held > 0 {
        fields.line(
            "held",
            format!("{} from before", text::plural(reservation.status.held, "address", "addresses")),
        );
    }
    resource::metadata_lines(&mut fields, reservation);
    fields.text()
}
