//! `ipamctl allocation bulk` and `allocation release`: many endpoints or allocations in one request.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{ArgGroup, Args};
use ipam_api::client::Call;
use ipam_api::name::{InterfaceName, NamePattern, NetworkAttachment};
use ipam_api::request::{
    BulkAllocateRequest, BulkAllocated, BulkAllocation, BulkReleaseRequest, BulkReleased, InterfaceRequest,
};
use ipam_api::resource::EndpointKey;
use ipam_api::{Name, ObjectName};

use crate::client::confirm;
use crate::client::requests::Again;
use crate::client::session::Session;
use crate::command::allocate::add_pools;
use crate::command::apply::load;
use crate::command::controller::{AutomaticArguments, StickyArguments};
use crate::command::metadata::parse_pair;
use crate::output::error::Failure;
use crate::output::table::Table;
use crate::output::text;

/// Arguments of `allocation bulk`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("who").args(["endpoints", "file"]).required(true)))]
#[command(after_help = "Examples:
  ipamctl allocation bulk vm/lab/build-0 vm/lab/build-1 --pool lab
  ipamctl allocation bulk --file hosts.txt --subnet rack-12 --ttl 8h")]
pub(crate) struct BulkArguments {
    /// Endpoints of one kind, realm and namespace, each as kind/name, kind/namespace/name or
    /// kind/realm/namespace/name
    #[arg(value_name = "ENDPOINT")]
    endpoints: Vec<String>,
    /// File with one endpoint per line; - for standard input
    #[arg(short = 'f', long, value_name = "FILE", conflicts_with = "endpoints")]
    file: Option<PathBuf>,
    /// Candidate pool, tried in this order; takes wildcards; may be repeated
    #[arg(long = "pool", value_name = "POOL")]
    pools: Vec<NamePattern>,
    /// Subnet to take from, in place of pools: any matching pool in it; may be repeated
    #[arg(long = "subnet", value_name = "SUBNET", conflicts_with = "pools")]
    subnets: Vec<Name>,
    /// Interface of the endpoints
    #[arg(long, default_value = "eth0")]
    interface: InterfaceName,
    /// Node of the endpoints
    #[arg(long)]
    node: Option<ObjectName>,
    /// Label of the endpoints, for pool selectors; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = parse_pair)]
    labels: Vec<(String, String)>,
    /// Network attachment of the interfaces
    #[arg(long, value_name = "ATTACHMENT")]
    network_attachment: Option<NetworkAttachment>,
    #[command(flatten)]
    comes_back: StickyArguments,
    /// Lease duration, such as 8h or 30d; repeating the command renews the leases
    #[arg(long, value_name = "DURATION", value_parser = text::parse_duration)]
    ttl: Option<Duration>,
    /// Description of each allocation
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    #[command(flatten)]
    own: AutomaticArguments,
}

/// Arguments of `allocation release`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").args(["ids", "file"]).required(true)))]
#[command(after_help = "Examples:
  ipamctl allocation release 48190233 48190234
  ipamctl allocation release --file ids.txt --yes")]
pub(crate) struct BulkReleaseArguments {
    /// IDs of the allocations
    #[arg(value_name = "ID")]
    ids: Vec<u64>,
    /// File with one ID per line; - for standard input
    #[arg(short = 'f', long, value_name = "FILE", conflicts_with = "ids")]
    file: Option<PathBuf>,
}

/// Runs `allocation bulk`.
pub(crate) async fn allocate(session: &Session, arguments: &BulkArguments) -> Result<(), Failure> {
    let words = match &arguments.file {
        Some(file) => lines(file)?,
        None => arguments.endpoints.clone(),
    };
    let keys = words.iter().map(|word| session.endpoint_key(word)).collect::<Result<Vec<_>, _>>()?;
    let Some(EndpointKey { kind, realm, namespace, .. }) = keys.first().cloned() else {
        return Err(Failure::usage("no endpoint given", "Give endpoints, or a file with one per line."));
    };
    let group = |key: &EndpointKey| (key.kind, key.realm.clone(), key.namespace.clone());
    if let Some(other) = keys.iter().find(|key| group(key) != (kind, realm.clone(), namespace.clone())) {
        return Err(Failure::usage(
            format!("{other} is not of kind {kind} in namespace {realm}/{namespace}"),
            "Repeat the command for each kind and namespace.",
        ));
    }
    let mut interface = InterfaceRequest {
        subnets: arguments.subnets.clone(),
        network_attachment: arguments.network_attachment.clone(),
        ..InterfaceRequest::blank(arguments.interface.clone())
    };
    add_pools(session, &mut interface, &arguments.pools).await?;
    let request = BulkAllocateRequest {
        kind,
        realm,
        namespace,
        names: keys.into_iter().map(|key| key.name).collect(),
        interface,
        labels: arguments.labels.iter().cloned().collect(),
        node: arguments.node.clone(),
        controller: arguments.comes_back.controller.clone(),
        replicas: arguments.own.replicas,
        sticky: arguments.comes_back.sticky.then_some(true),
        scale_down: arguments.comes_back.scale_down,
        automatic_pool: arguments.own.pool(),
        lifecycle: None,
        ttl_ms: arguments.ttl.map(text::milliseconds),
        description: arguments.description.clone().unwrap_or_default(),
    };
    let repeat = "run the same command again; existing addresses are shown, not allocated twice";
    // The endpoints and their interface identify the request, so a repetition gets the same answer.
    let call = Call::post("/v1/allocations/bulk").json(&request)?.repeatable();
    let answer = session.write(call, Again::Same(repeat.to_owned())).await?;
    let allocated: BulkAllocated = answer.read()?;
    let addresses: Vec<String> =
        allocated.allocations.iter().map(|one| one.address.addr().to_string()).collect();
    session.show(&answer.body, &addresses.join("\n"), || Ok(shown(&allocated)))?;
    session.tell(&conclusion(&allocated, session.writing.dry_run));
    Ok(())
}

/// One line for each address, without titles: the values explain themselves.
fn shown(allocated: &BulkAllocated) -> String {
    let line = |one: &BulkAllocation| {
        [
            one.name.to_string(),
            one.address.to_string(),
            format!("pool {}", one.pool),
            format!("allocation {}", one.allocation),
        ]
    };
    Table::untitled(allocated.allocations.iter().map(line)).render(false, None)
}

fn conclusion(allocated: &BulkAllocated, dry_run: bool) -> String {
    if dry_run {
        return "a dry run: nothing was allocated, and these addresses are not held".to_owned();
    }
    let repeated = allocated.allocations.iter().filter(|one| one.repeated).count();
    let new = text::plural((allocated.allocations.len() - repeated) as u64, "address", "addresses");
    match repeated {
        0 => format!("{new} allocated."),
        _ => format!("{new} allocated; {repeated} were held already."),
    }
}

/// Runs `allocation release`.
pub(crate) async fn release(session: &Session, arguments: &BulkReleaseArguments) -> Result<(), Failure> {
    let allocations = match &arguments.file {
        Some(file) => lines(file)?.iter().map(|line| id(line)).collect::<Result<Vec<_>, _>>()?,
        None => arguments.ids.clone(),
    };
    let number = text::plural(allocations.len() as u64, "allocation", "allocations");
    let summary = [
        format!("{number} would be released."),
        "Addresses that are attached stay on their interfaces, and may then be allocated twice.".to_owned(),
    ];
    confirm::moderate(session, &summary, &format!("Release {number}?")).await?;
    let request = BulkReleaseRequest { allocations };
    let call = Call::post("/v1/allocations/release").json(&request)?;
    let answer = session.write(call, Again::ByKey).await?;
    let released: BulkReleased = answer.read()?;
    let addresses = text::plural(released.addresses.len() as u64, "address", "addresses");
    let gone = match released.gone {
        0 => String::new(),
        gone => format!("; {gone} of the allocations were gone already"),
    };
    let names: Vec<String> = released.addresses.iter().map(ToString::to_string).collect();
    let sentence = format!("{addresses} {}{gone}", session.tense("released"));
    session.done(&answer, &names.join("\n"), &sentence)
}

fn id(line: &str) -> Result<u64, Failure> {
    line.parse().map_err(|_| {
        Failure::usage(
            format!("{} is not an allocation ID", ipam_api::name::shown(line)),
            "Write one ID per line.",
        )
    })
}

/// Non-empty lines of a file.
fn lines(file: &Path) -> Result<Vec<String>, Failure> {
    let text = load(file)?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(lines.map(str::to_owned).collect())
}
