//! `ipamctl allocate`: addresses for an endpoint by hand, all or none.

use std::net::IpAddr;
use std::time::Duration;

use clap::{ArgGroup, Args};
use ipam_api::address::parse_address;
use ipam_api::client::Call;
use ipam_api::name::{InterfaceName, NamePattern, NetworkAttachment};
use ipam_api::request::{AllocateRequest, Allocated, InterfaceRequest};
use ipam_api::resource::{EndpointKey, GivenAddress, Pool, Route};
use ipam_api::{Code, Family, Name, ObjectName, Problem};

use crate::client::requests::Again;
use crate::client::resource;
use crate::client::resource_type::Read;
use crate::client::session::Session;
use crate::command::controller::{AutomaticArguments, StickyArguments};
use crate::command::metadata::parse_pair;
use crate::command::routes::parse_route;
use crate::output::error::Failure;
use crate::output::table::Table;
use crate::output::text;

/// Arguments of `allocate`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("who").args(["endpoint"]).required(true)))]
#[command(after_help = "Examples:
  ipamctl allocate --endpoint host/db-07 --pool rack-12 --pool rack-12-v6
  ipamctl allocate --endpoint host/db-07 --pool rack-12 --address 10.20.12.31 --mac 3c:ec:ef:12:00:07
  ipamctl allocate --endpoint vm/lab/build-3 --interface eth1 -o json
  ipamctl allocate --endpoint pod/shop/db-0 --controller apps/StatefulSet/db --address 10.20.12.40
  ipamctl allocate --endpoint host/lab/tmp-3 --pool lab --ttl 8h
  ipamctl allocate --endpoint host/printer-12 --address 10.20.12.9 --adopt --hostname printer-12.example.com
  ipamctl allocate --endpoint claim/lab/build-7 --pool lab --wait
  ipamctl allocate --endpoint vm/lab/build-4 --pool \"web*\" --node worker-3
  ipamctl allocate --endpoint pod/shop/web-a --controller apps/Deployment/web --subnet lan-10 --automatic +1 --replicas 3")]
pub(crate) struct AllocateArguments {
    #[command(flatten)]
    arguments: RequestArguments,
}

/// A request for addresses.
#[derive(Debug, Args)]
pub(crate) struct RequestArguments {
    /// Endpoint of the addresses: kind/name, kind/namespace/name or kind/realm/namespace/name
    #[arg(long)]
    pub(crate) endpoint: Option<String>,
    /// Candidate pool, tried in this order; takes wildcards; may be repeated
    #[arg(long = "pool", value_name = "POOL")]
    pools: Vec<NamePattern>,
    /// Subnet to take from, in place of pools: any matching pool in it; may be repeated
    #[arg(long = "subnet", value_name = "SUBNET", conflicts_with = "pools")]
    subnets: Vec<Name>,
    /// Specific address to allocate; may be repeated
    #[arg(long = "address", value_name = "ADDRESS", value_parser = parse_address)]
    addresses: Vec<IpAddr>,
    /// Interface of the endpoint
    #[arg(long, default_value = "eth0")]
    interface: InterfaceName,
    /// Node of the endpoint
    #[arg(long)]
    node: Option<ObjectName>,
    /// MAC address of the interface
    #[arg(long)]
    mac: Option<String>,
    /// Label of the endpoint, for pool selectors; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = parse_pair)]
    labels: Vec<(String, String)>,
    /// Network attachment of the interface
    #[arg(long, value_name = "ATTACHMENT")]
    network_attachment: Option<NetworkAttachment>,
    /// Address of the host's interface: only pools whose subnet contains it are used; may be repeated
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address, conflicts_with = "wait")]
    link_address: Vec<IpAddr>,
    /// Additional route of the interface; may be repeated
    #[arg(long = "route", value_name = "CIDR=GATEWAY", value_parser = parse_route)]
    routes: Vec<Route>,
    /// Install no default route for this interface
    #[arg(long)]
    clean_gateway: bool,
    /// Spiderpool annotation of a pod, such as ipam.spidernet.io/ippool={"ipv4":["web"]}; may be repeated
    #[arg(long = "annotation", value_name = "KEY=VALUE", value_parser = parse_pair)]
    annotations: Vec<(String, String)>,
    /// UID of the endpoint's current incarnation
    #[arg(long)]
    uid: Option<String>,
    #[command(flatten)]
    comes_back: StickyArguments,
    /// Lease duration, such as 8h or 30d; repeating the command renews the lease
    #[arg(long, value_name = "DURATION", value_parser = text::parse_duration)]
    ttl: Option<Duration>,
    /// Queue the request while the pools are exhausted; repeating the command shows its state
    #[arg(long, conflicts_with = "adopt")]
    wait: bool,
    /// Record addresses that the endpoint already uses; needs --address
    #[arg(long, requires = "addresses")]
    adopt: bool,
    /// Give a reinstalled host the addresses that it holds under another machine id; needs --uid
    #[arg(long, requires = "uid")]
    take_over: bool,
    /// Host name of the endpoint
    #[arg(long, value_name = "NAME")]
    hostname: Option<String>,
    /// Description
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    #[command(flatten)]
    own: AutomaticArguments,
}

/// Builds the request that the arguments describe.
pub(crate) async fn request(
    session: &Session,
    arguments: &RequestArguments,
) -> Result<AllocateRequest, Failure> {
    let endpoint = session.endpoint_key(arguments.endpoint.as_deref().unwrap_or_default())?;
    let mut interface = InterfaceRequest {
        subnets: arguments.subnets.clone(),
        addresses: arguments.addresses.clone(),
        mac: arguments.mac.clone(),
        network_attachment: arguments.network_attachment.clone(),
        clean_gateway: arguments.clean_gateway,
        link_addresses: arguments.link_address.clone(),
        ..InterfaceRequest::blank(arguments.interface.clone())
    };
    add_pools(session, &mut interface, &arguments.pools).await?;
    for name in &arguments.subnets {
        session.check_named("subnet", "subnets", name.as_str()).await?;
    }
    if arguments.pools.is_empty() && arguments.subnets.is_empty() && session.said.network.is_some() {
        return Err(Failure::usage(
            "--network has no effect here: the network follows from the pools or subnets of the request",
            "Select a pool of that network with --pool, or a subnet with --subnet.",
        ));
    }
    Ok(AllocateRequest {
        uid: arguments.uid.clone(),
        labels: arguments.labels.iter().cloned().collect(),
        node: arguments.node.clone(),
        controller: arguments.comes_back.controller.clone(),
        sticky: arguments.comes_back.sticky.then_some(true),
        scale_down: arguments.comes_back.scale_down,
        interfaces: vec![interface],
        replicas: arguments.own.replicas,
        automatic_pool: arguments.own.pool(),
        annotations: arguments.annotations.iter().cloned().collect(),
        routes: arguments.routes.clone(),
        ttl_ms: arguments.ttl.map(text::milliseconds),
        adopt: arguments.adopt,
        take_over: arguments.take_over,
        wait: arguments.wait,
        hostname: arguments.hostname.clone(),
        description: arguments.description.clone().unwrap_or_default(),
        ..AllocateRequest::blank(endpoint)
    })
}

/// Adds pools to the lists of their families.
pub(super) async fn add_pools(
    session: &Session,
    interface: &mut InterfaceRequest,
    patterns: &[NamePattern],
) -> Result<(), Failure> {
    for pattern in patterns {
        // The request lists pools by family, which the command line doesn't specify.
        let families = families(session, pattern).await?;
        for (family, pools) in
            [(Family::V4, &mut interface.ipv4_pools), (Family::V6, &mut interface.ipv6_pools)]
        {
            pools.extend(families.contains(&family).then(|| pattern.clone()));
        }
    }
    Ok(())
}

/// Families of the pools that match a pattern.
async fn families(session: &Session, pattern: &NamePattern) -> Result<Vec<Family>, Failure> {
    if let Some(name) = pattern.name() {
        return Ok(vec![resource::fetch::<Pool>(session, &name).await?.0.status.family]);
    }
    let fits = |pool: &Read<Pool>| pattern.fits(&pool.spec.name);
    let pools = session.list::<Read<Pool>>("/v1/pools", None, fits).await?.items;
    for pool in &pools {
        if let Some(network) = &pool.spec.network {
            session.check_network(&format!("pool {}", pool.spec.name), network)?;
        }
    }
    if pools.is_empty() {
        let nothing = Problem::new(Code::NotFound, format!("no pool matches {pattern}"));
        return Err(nothing.help("List the pools: ipamctl pool list").into());
    }
    Ok(pools.iter().map(|pool| pool.status.family).collect())
}

/// Runs the command.
pub(crate) async fn run(session: &Session, arguments: &AllocateArguments) -> Result<(), Failure> {
    let request = request(session, &arguments.arguments).await?;
    let endpoint = &request.endpoint;
    let repeat = format!(
        "run the same command again; existing addresses of {endpoint} on {} are shown, not allocated twice",
        arguments.arguments.interface
    );
    // Endpoint and interface identify a request without an attachment, so a repetition gets the same answer.
    let call = Call::post("/v1/allocations").json(&request)?.repeatable();
    let answer = session.write(call, Again::Same(repeat)).await?;
    let allocated: Allocated = answer.read()?;
    let given = allocated.interfaces.iter().flat_map(|interface| &interface.addresses);
    let names: Vec<String> = given.map(|given| given.address.addr().to_string()).collect();
    session.show(&answer.body, &names.join("\n"), || Ok(shown(&allocated)))?;
    session.tell(&conclusion(&allocated, endpoint, session.writing.dry_run));
    Ok(())
}

/// One line for each address, without titles: the values explain themselves.
fn shown(allocated: &Allocated) -> String {
    let given = allocated.interfaces.iter().flat_map(|interface| &interface.addresses);
    let line = |given: &GivenAddress| {
        [
            given.address.to_string(),
            given.gateway.map_or_else(|| "no gateway".to_owned(), |gateway| format!("gateway {gateway}")),
            format!("pool {}", given.pool),
            format!("allocation {}", given.allocation),
        ]
    };
    Table::untitled(given.map(line)).render(false, None)
}

fn conclusion(allocated: &Allocated, endpoint: &EndpointKey, dry_run: bool) -> String {
    if let Some(why) = &allocated.waiting {
        let would = if dry_run { "would wait" } else { "waits" };
        return format!(
            "{endpoint} {would}: {} ({}).   status: ipamctl endpoint show {endpoint}   undo: ipamctl release --endpoint {endpoint}",
            why.message, why.reason
        );
    }
    if dry_run {
        return "a dry run: nothing was allocated, and these addresses are not held".to_owned();
    }
    let given = || allocated.interfaces.iter().flat_map(|interface| &interface.addresses);
    let lease = given().find_map(|given| given.lease.as_ref());
    if let (Some(lease), true) = (lease, allocated.repeated) {
        return format!("the lease of {endpoint} was renewed; it ends at {}.", text::moment(lease.ends_at));
    }
    if allocated.repeated {
        return format!("{endpoint} already holds these addresses; nothing was changed.");
    }
    let addresses = text::plural(given().count() as u64, "address", "addresses");
    if let Some(lease) = lease {
        return format!(
            "{addresses} leased to {endpoint} until {}.   longer: ipamctl renew --endpoint {endpoint}",
            text::moment(lease.ends_at)
        );
    }
    format!(
        "{addresses} held by {endpoint} until released (no lease).   undo: ipamctl release --endpoint {endpoint}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_allocation_has_a_line() {
        let allocated: Allocated = serde_json::from_value(serde_json::json!({
            "endpoint": {"realm": "default", "kind": "host", "namespace": "default", "name": "db-07"},
            "interfaces": [{"name": "eth0", "addresses": [
                {"address": "10.20.12.31/24", "gateway": "10.20.12.1", "pool": "rack-12",
                 "allocation": 48211911u64, "checked": false},
                {"address": "2001:db8:20:c::1f/64", "pool": "rack-12-v6",
                 "allocation": 48211912u64, "checked": false}]}],
            "repeated": false, "revision": 48211912u64
        }))
        .unwrap();
        assert_eq!(
            shown(&allocated),
            "10.20.12.31/24        gateway 10.20.12.1  pool rack-12     allocation 48211911\n\
             2001:db8:20:c::1f/64  no gateway          pool rack-12-v6  allocation 48211912\n"
        );
        assert_eq!(
            conclusion(&allocated, &allocated.endpoint, false),
            "2 addresses held by host/db-07 until released (no lease).   \
             undo: ipamctl release --endpoint host/db-07"
        );
    }
}
