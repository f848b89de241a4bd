//! `ipamctl endpoint`: workloads and machines that hold addresses.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use ipam_api::client::{Call, with_query};
use ipam_api::request::Released;
use ipam_api::resource::{
    Endpoint, EndpointKey, EndpointKind, EndpointStatus, GivenAddress, Interface, Reservation,
    ReservationStatus, Resource,
};
use ipam_api::time::Timestamp;
use ipam_api::{AddressRange, Code, Name};

use crate::client::confirm;
use crate::client::list::Listing;
use crate::client::requests::Again;
use crate::client::resource;
use crate::client::scope::Part;
use crate::client::session::Session;
use crate::command::configuration;
use crate::command::controller::{self, EndArguments, ScaleArguments};
use crate::command::watch::{self, WatchArguments, Watched};
use crate::output::error::Failure;
use crate::output::format::Format;
use crate::output::table::Table;
use crate::output::text::{self, Fields};

pub(crate) const EXAMPLES: &str = "Examples:
  ipamctl endpoint list --kind pod
  ipamctl endpoint show host/db-07
  ipamctl endpoint delete host/db-07";

/// Endpoint as the servers return it.
type Read = Resource<Endpoint, EndpointStatus>;

/// Verbs of endpoints.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// List endpoints, optionally of a kind, realm or namespace
    #[command(
        alias = "ls",
        after_help = "Examples:\n  ipamctl endpoint list\n  ipamctl endpoint list --kind pod -o name\n  ipamctl endpoint list --realm prod-eu --namespace web"
    )]
    List(ListArguments),
    /// Show an endpoint with its addresses
    #[command(
        alias = "describe",
        after_help = "Examples:
  ipamctl endpoint show host/db-07
  ipamctl endpoint show pod/web/frontend-7 --realm prod-eu
  ipamctl endpoint show pod/prod-eu/web/frontend-7
  ipamctl endpoint show host/db-07 -o netplan
  ipamctl endpoint show host/db-07 -o networkd --output-dir /"
    )]
    Show(ShowArguments),
    /// Follow allocations and releases of endpoints until Ctrl-C
    #[command(
        after_help = "Examples:\n  ipamctl endpoint watch\n  ipamctl endpoint watch host/db-07 -o json"
    )]
    Watch(WatchArguments),
    /// Release all addresses of an endpoint
    #[command(
        alias = "rm",
        after_help = "Examples:\n  ipamctl endpoint delete host/db-07\n  ipamctl endpoint delete pod/web/frontend-7 --yes"
    )]
    Delete {
        /// kind/name, kind/namespace/name or kind/realm/namespace/name
        endpoint: String,
    },
    /// Set the replicas of a controller; addresses kept for removed endpoints are released
    #[command(
        after_help = "Examples:\n  ipamctl endpoint scale apps/StatefulSet/db --namespace shop --replicas 2\n  ipamctl endpoint scale kubevirt.io/VirtualMachine/mail --replicas 0"
    )]
    Scale(ScaleArguments),
    /// End a deleted controller: kept addresses are released, its automatic pools deleted once empty
    #[command(
        after_help = "Examples:\n  ipamctl endpoint end apps/StatefulSet/db --namespace shop\n  ipamctl endpoint end apps/Deployment/web --uid 0b54-11"
    )]
    End(EndArguments),
}

/// Filters of the list.
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Only pods, vms, hosts, machines, claims or containers
    #[arg(long)]
    kind: Option<EndpointKind>,
}

/// Endpoint to show, and where its files go.
#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// kind/name, kind/namespace/name or kind/realm/namespace/name
    endpoint: String,
    /// Root directory below which to write the files of -o netplan, networkd, ifupdown, nmstate,
    /// networkmanager or cloud-init, with their modes; default: standard output
    #[arg(long, value_name = "DIRECTORY")]
    output_dir: Option<PathBuf>,
}

/// Runs a verb.
pub(crate) async fn run(session: &Session, verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Watch(arguments) => watch::run(session, Watched::Endpoint, &arguments).await,
        Verb::List(arguments) => list(session, &arguments).await,
        Verb::Show(arguments) => show(session, &arguments).await,
        Verb::Scale(arguments) => controller::scale(session, arguments).await,
        Verb::End(arguments) => controller::end(session, arguments).await,
        Verb::Delete { endpoint } => delete(session, &session.endpoint_key(&endpoint)?).await,
    }
}

/// Path of an endpoint in the API.
pub(crate) fn path(key: &EndpointKey) -> String {
    format!("/v1/endpoints/{}/{}/{}/{}", key.kind, key.realm, key.namespace, key.name)
}

async fn list(session: &Session, arguments: &ListArguments) -> Result<(), Failure> {
    let mut filters = session.narrowed("endpoints", &[Part::Realm, Part::Namespace])?;
    filters.extend(arguments.kind.iter().map(|kind| ("kind", kind.to_string())));
    let keep = |found: &Read| {
        let key = &found.spec.key;
        arguments.kind.is_none_or(|kind| kind == key.kind)
            && session.said.fits_realm(&key.realm)
            && session.said.fits_namespace(&key.namespace)
    };
    let name = |found: &Read| found.spec.key.to_string();
    session.show_list(Listing { words: ("endpoint", "endpoints"), filters, name, table }, keep).await
}

fn table(endpoints: &[Read], wide: bool, _now: Timestamp) -> Table {
    Table::of(endpoints)
        .text("ENDPOINT", |found| &found.spec.key)
        .text("ADDRESSES", addresses)
        .spare("INTERFACES", 2, |found| text::joined(found.status.interfaces.iter().map(|one| &one.name)))
        .spare("NODE", 1, nodes)
        .only_if(wide)
        .spare("UID", 4, |found| text::or_dash(found.spec.uid.as_ref()))
        .table()
}

fn addresses(endpoint: &Read) -> String {
    let interfaces = &endpoint.status.interfaces;
    // A waiting endpoint has no addresses of the awaited pools, and mostly none at all.
    match endpoint.status.conditions.first().filter(|_| interfaces.is_empty()) {
        Some(why) => format!("waits ({})", why.reason),
        None => {
            text::joined(interfaces.iter().flat_map(|one| &one.addresses).map(|given| given.address.addr()))
        }
    }
}

fn nodes(endpoint: &Read) -> String {
    let interfaces = endpoint.status.interfaces.iter();
    let attachments = interfaces.flat_map(|one| one.attachment.iter().chain(&one.also_attached));
    let mut nodes: Vec<&str> = attachments.map(|attachment| attachment.node.as_str()).collect();
    nodes.dedup();
    text::joined(nodes)
}

/// Reads an endpoint. For an unknown name, the failure suggests the most similar existing name.
async fn fetch(session: &Session, key: &EndpointKey) -> Result<(Read, ipam_api::client::Answer), Failure> {
    // An endpoint may hold addresses of several networks. This command can't show or release only some of
    // them.
    session.without("endpoints", &[Part::Network])?;
    let read = session.read(&path(key)).await;
    let called = |found: &Read| {
        let other = &found.spec.key;
        (other.kind == key.kind).then(|| other.to_string())
    };
    let answer = resource::suggest_among(session, read, "endpoints", &key.to_string(), called).await?;
    Ok((answer.read()?, answer))
}

/// True if an endpoint waits for addresses and has none.
pub(crate) async fn only_waits(session: &Session, key: &EndpointKey) -> Result<bool, Failure> {
    match session.read(&path(key)).await {
        Ok(answer) => Ok(answer.read::<Read>()?.status.interfaces.is_empty()),
        Err(failure) if failure.code() == Some(Code::NotFound) => Ok(false),
        Err(failure) => Err(failure),
    }
}

async fn show(session: &Session, arguments: &ShowArguments) -> Result<(), Failure> {
    let key = &session.endpoint_key(&arguments.endpoint)?;
    let directory = arguments.output_dir.as_deref();
    if let Format::Host(format) = session.format {
        let (endpoint, _) = fetch(session, key).await?;
        return configuration::show(session, format, key, &endpoint.status.interfaces, directory);
    }
    if directory.is_some() {
        return Err(Failure::usage(
            "--output-dir is for formats of configuration files",
            "For example: ipamctl endpoint show host/db-07 -o networkd --output-dir /",
        ));
    }
    let fetched = fetch(session, key).await;
    if let Err(failure) = &fetched
        && failure.code() == Some(Code::NotFound)
        && session.format.is_for_people()
        && let Some(text) = only_recorded(session, key).await
    {
        return session.print(&text);
    }
    let (endpoint, answer) = fetched?;
    let name = endpoint.spec.key.to_string();
    session.show(&answer.body, &name, || Ok(shown(&endpoint, session.environment.width)))
}

/// Text of an endpoint that holds no address, but whose addresses are recorded in reservations.
async fn only_recorded(session: &Session, key: &EndpointKey) -> Option<String> {
    let whole = format!("{}/{}/{}/{}", key.kind, key.realm, key.namespace, key.name);
    let path = with_query("/v1/reservations", "endpoint", &whole);
    let found = session.list::<Resource<Reservation, ReservationStatus>>(&path, None, |_| true).await.ok()?;
    let records = found.items.iter().map(|one| &one.spec).filter(|spec| spec.endpoint.as_ref() == Some(key));
    let records: Vec<&Reservation> = records.collect();
    records.first()?;
    let mut fields = Fields::default();
    fields.line("endpoint", format!("{key}   holds nothing"));
    for record in records {
        fields.line("recorded", recorded(&record.name, &record.network, &record.addresses));
    }
    Some(fields.text().trim_end().to_owned())
}

fn recorded(reservation: &Name, network: &Name, addresses: &[AddressRange]) -> String {
    format!("{}   network {network}   reservation {reservation}", text::joined(addresses))
}

fn shown(endpoint: &Read, width: Option<usize>) -> String {
    let key = &endpoint.spec.key;
    let mut fields = Fields::default();
    fields.raw(&text::heading("endpoint", &key.to_string(), &endpoint.meta, None));
    fields.line("kind", format!("{}   realm {}   namespace {}", key.kind, key.realm, key.namespace));
    fields.line_if("uid", endpoint.spec.uid.as_deref().unwrap_or_default());
    fields.some("controller", endpoint.spec.controller.as_ref().map(controller::written));
    if endpoint.spec.sticky {
        let scale_down = endpoint.spec.scale_down.map(|policy| format!("   when scaled down {policy}"));
        fields.line("sticky", format!("yes{}", scale_down.unwrap_or_default()));
    }
    for interface in &endpoint.status.interfaces {
        let kept = format!("{} is kept for the endpoint, without an attachment", interface.name);
        fields.some("kept", interface.kept.then_some(kept));
        let waits = format!("{} waits for its own ADD", interface.name);
        fields.some("preallocated", interface.preallocated.then_some(waits));
        for attachment in interface.attachment.iter().chain(&interface.also_attached) {
            fields.line(
                "attachment",
                format!(
                    "{} on node {}   network configuration {}   container {}",
                    interface.name, attachment.node, attachment.config, attachment.container_id
                ),
            );
        }
    }
    for given in endpoint.status.interfaces.iter().flat_map(|interface| &interface.addresses) {
        let address = given.address.addr();
        if given.hostname.is_some() || !given.description.is_empty() {
            let parts = [given.hostname.as_deref().unwrap_or_default(), &given.description];
            let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            fields.line("called", format!("{address} {}", parts.join("   ")));
        }
        fields.some("hardware", given.mac.as_ref().map(|mac| format!("{address} {mac}")));
        let mut settings: Vec<String> = Vec::new();
        settings.extend(given.clean_gateway.then(|| "no default route".to_owned()));
        settings.extend(given.mtu.map(|mtu| format!("MTU {mtu}")));
        settings
            .extend(given.routes.iter().map(|route| format!("{} via {}", route.destination, route.gateway)));
        if !settings.is_empty() {
            fields.line("routes", format!("{address} {}", settings.join("   ")));
        }
        let lease = given.lease.as_ref().map(|lease| format!("{address} {}", text::lease(Some(lease))));
        fields.some("lease", lease);
    }
    for record in &endpoint.status.recorded {
        fields.line("recorded", recorded(&record.reservation, &record.network, &record.addresses));
    }
    for why in &endpoint.status.conditions {
        let since = text::moment(why.since);
        fields.line("waits", format!("since {since}: {} ({})", why.message, why.reason));
    }
    fields.line("since", text::moment(endpoint.meta.created_at));
    fields.raw("");
    fields.raw(&given(&endpoint.status.interfaces).render(true, width));
    fields.text()
}

/// Table of the addresses of interfaces, one per row.
pub(crate) fn given(interfaces: &[Interface]) -> Table {
    let pairs = interfaces.iter().flat_map(|one| one.addresses.iter().map(move |given| (one, given)));
    let pairs: Vec<(&Interface, &GivenAddress)> = pairs.collect();
    Table::of(&pairs)
        .text("INTERFACE", |(interface, _)| &interface.name)
        .text("ADDRESS", |(_, given)| given.address)
        .text("GATEWAY", |(_, given)| text::or_dash(given.gateway.as_ref()))
        .spare("VLAN", 3, |(_, given)| text::or_dash(given.vlan.as_ref()))
        .text("POOL", |(_, given)| &given.pool)
        .number("ALLOCATION", |(_, given)| given.allocation)
        .spare("CHECKED", 2, |(_, given)| if given.checked { "yes" } else { "no" })
        .table()
}

/// Releases all that an endpoint holds.
pub(crate) async fn delete(session: &Session, key: &EndpointKey) -> Result<(), Failure> {
    let (endpoint, _) = fetch(session, key).await?;
    let interfaces = &endpoint.status.interfaces;
    let attached = interfaces.iter().find_map(|interface| interface.attachment.as_ref());
    if let Some(attachment) = attached {
        let number: usize = interfaces.iter().map(|interface| interface.addresses.len()).sum();
        let summary = [
            format!(
                "{key} is attached on node {} and holds {}.",
                attachment.node,
                text::plural(number as u64, "address", "addresses")
            ),
            format!(
                "Releasing does not remove the addresses from that {}; they may then be allocated twice.",
                key.kind
            ),
        ];
        confirm::moderate(session, &summary, "Release all of them anyway?").await?;
    }
    let answer = session.write(Call::delete(path(key)), Again::ByKey).await?;
    let released: Released = answer.read()?;
    let sentence = if released.addresses.is_empty() {
        format!("the claim of {key} {}", session.tense("withdrawn"))
    } else {
        format!("{} of {key} {}", text::released(&released), session.tense("released"))
    };
    session.done(&answer, &key.to_string(), &sentence)
}
