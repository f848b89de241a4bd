//! `ipamctl quarantine`: addresses that foreign hosts use.

use std::net::IpAddr;

use clap::{Args, Subcommand};
use ipam_api::address::parse_address;
use ipam_api::client::Call;
use ipam_api::mac::MacAddress;
use ipam_api::probe::Quarantine;
use ipam_api::time::Timestamp;
use ipam_api::{Name, ObjectName};

use crate::client::list::Listing;
use crate::client::requests::{Again, with_all};
use crate::client::scope::Part;
use crate::client::session::Session;
use crate::output::error::Failure;
use crate::output::table::Table;
use crate::output::text::{self, Fields};

pub(crate) const EXAMPLES: &str = "Examples:
  ipamctl quarantine list
  ipamctl quarantine show 10.10.0.77";

/// Verbs of quarantines.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// List quarantined addresses, oldest first
    #[command(
        alias = "ls",
        after_help = "Examples:
  ipamctl quarantine list
  ipamctl quarantine list --pool web -o json
  ipamctl quarantine list --mac 52:54:00:aa:01:02"
    )]
    List(ListArguments),
    /// Show the quarantine of an address
    #[command(
        alias = "describe",
        after_help = "Examples:
  ipamctl quarantine show 10.10.0.77
  ipamctl quarantine show 10.10.0.77 --network lab"
    )]
    Show(AddressArguments),
    /// End the quarantine of an address; it becomes free
    #[command(
        alias = "clear",
        alias = "delete",
        alias = "rm",
        after_help = "Agents end a quarantine by themselves after the foreign host is silent.

Examples:
  ipamctl quarantine end 10.10.0.77
  ipamctl quarantine end 10.10.0.77 --dry-run"
    )]
    End(AddressArguments),
}

/// Filters of the list.
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Only addresses of this pool
    #[arg(long)]
    pool: Option<Name>,
    /// Only addresses that the host with this MAC address uses
    #[arg(long)]
    mac: Option<MacAddress>,
    /// Only addresses that the agent of this node reported
    #[arg(long)]
    node: Option<ObjectName>,
}

/// A quarantined address.
#[derive(Debug, Args)]
pub(crate) struct AddressArguments {
    /// Address
    #[arg(value_parser = parse_address)]
    address: IpAddr,
}

/// Path of a quarantine in the API.
pub(crate) fn path(network: Option<&Name>, address: IpAddr) -> String {
    with_all(&format!("/v1/quarantines/{address}"), [("network", network.map(ToString::to_string))])
}

/// Runs a verb.
pub(crate) async fn run(session: &Session, verb: Verb) -> Result<(), Failure> {
    let network = session.settings.network.as_ref();
    match verb {
        Verb::List(arguments) => list(session, &arguments).await,
        Verb::Show(AddressArguments { address }) => {
            let answer = session.read(&path(network, address)).await?;
            session.show(&answer.body, &address.to_string(), || Ok(shown(&answer.read()?, session.now())))
        }
        Verb::End(AddressArguments { address }) => {
            let answer = session.write(Call::delete(path(network, address)), Again::ByKey).await?;
            let ended = session.tense("ended");
            let sentence =
                format!("quarantine of {address} {ended}; the next probe finds a host that still uses it");
            session.done(&answer, &address.to_string(), &sentence)
        }
    }
}

async fn list(session: &Session, arguments: &ListArguments) -> Result<(), Failure> {
    let ListArguments { pool, mac, node } = arguments;
    let keep = |found: &Quarantine| {
        session.fits_network(&found.network)
            && pool.as_ref().is_none_or(|pool| *pool == found.pool)
            && mac.is_none_or(|mac| mac == found.mac)
            && node.as_ref().is_none_or(|node| *node == found.reported_by.name)
    };
    let mut filters = session.narrowed("quarantines", &[Part::Network])?;
    filters.extend(pool.iter().map(|pool| ("pool", pool.to_string())));
    filters.extend(mac.iter().map(|mac| ("mac", mac.to_string())));
    filters.extend(node.iter().map(|node| ("reported_by", node.to_string())));
    let name = |found: &Quarantine| found.address.to_string();
    session.show_list(Listing { words: ("quarantine", "quarantines"), filters, name, table }, keep).await
}

fn table(found: &[Quarantine], _wide: bool, now: Timestamp) -> Table {
    Table::of(found)
        .text("ADDRESS", |one| one.address)
        .spare("NETWORK", 4, |one| &one.network)
        .spare("POOL", 1, |one| &one.pool)
        .text("MAC", |one| one.mac)
        .text("REPORTED BY", |one| &one.reported_by)
        .spare("CONFIRMED BY", 3, |one| text::or_dash(one.confirmed_by.as_ref()))
        .text("SINCE", |one| format!("{} ago", text::age(one.since, now)))
        .spare("HEARD", 2, |one| format!("{} ago", text::age(one.heard_at, now)))
        .table()
}

fn shown(found: &Quarantine, now: Timestamp) -> String {
    let mut fields = Fields::default();
    fields.line("quarantine", format!("{}   pool {}   network {}", found.address, found.pool, found.network));
    lines(&mut fields, found, now);
    fields.text()
}

/// Adds the evidence, and the commands that end the quarantine or record the host.
pub(crate) fn lines(fields: &mut Fields, found: &Quarantine, now: Timestamp) {
    fields.line("used by", format!("a foreign host, MAC {}", found.mac));
    let (at, age) = (text::moment(found.since), text::age(found.since, now));
    fields.line("reported by", format!("the agent of {} at {at} ({age} ago)", found.reported_by));
    let confirmed = found.confirmed_by.as_ref().map(|node| format!("the agent of {node}"));
    fields.line("confirmed by", confirmed.unwrap_or_else(|| "no other agent".to_owned()));
    fields.line("heard", format!("{} ago", text::age(found.heard_at, now)));
    for (purpose, command) in remedies(found) {
        fields.line(purpose, command);
    }
}

/// Flag of a network other than the default one, for a command line.
pub(crate) fn in_network(network: &Name) -> String {
    if *network == Name::default_name() { String::new() } else { format!(" --network {network}") }
}

/// Commands about the address, each with its purpose.
pub(crate) fn remedies(found: &Quarantine) -> [(&'static str, String); 3] {
    let Quarantine { address, network, pool, mac, .. } = found;
    let place = in_network(network);
    [
        ("end it", format!("ipamctl quarantine end {address}{place}")),
        ("reserve it", format!("ipamctl reservation create NAME --address {address}{place}")),
        (
            "adopt it",
            format!(
                "ipamctl allocate --endpoint host/NAME --pool {pool} --address {address} --mac {mac} --adopt"
            ),
        ),
    ]
}
