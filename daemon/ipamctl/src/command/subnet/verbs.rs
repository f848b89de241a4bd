//! Verbs of subnets.

use std::net::IpAddr;

use clap::{Args, Subcommand};
use ipam_api::Name;
use ipam_api::address::{parse_address, parse_cidr};
use ipam_api::resource::{Route, Subnet};
use ipam_api::time::Timestamp;
use ipnet::IpNet;
use serde_json::json;

use super::automatic::{self, AutomaticArguments, AutomaticChanges};
use crate::client::resource;
use crate::client::resource_type::{Read, with_defaults};
use crate::client::scope::Part;
use crate::client::session::Session;
use crate::command::arguments::{Named, replace};
use crate::command::gateway;
use crate::command::map::{self, MapArguments, count_lines};
use crate::command::metadata::{MetadataArguments, MetadataChanges, check_apart};
use crate::command::probing::{self, ProbingArguments};
use crate::command::routes::{add_routes, check_routes, parse_route, route};
use crate::command::watch::{self, WatchArguments, Watched};
use crate::output::error::Failure;
use crate::output::table::Table;
use crate::output::text;

pub(crate) const EXAMPLES: &str = "Examples:
  ipamctl subnet list
  ipamctl subnet create lan-10 --cidr 10.10.0.0/24 --gateway 10.10.0.1 --vlan 110";

/// Verbs of subnets.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// List subnets, optionally of one --network
    #[command(
        alias = "ls",
        after_help = "Examples:\n  ipamctl subnet list\n  ipamctl subnet list --network lab"
    )]
    List,
    /// Show a subnet
    #[command(alias = "describe", after_help = "Examples:\n  ipamctl subnet show lan-10")]
    Show(Named),
    /// Show address ranges by state and pool
    #[command(after_help = "Examples:
  ipamctl subnet map lan-10
  ipamctl subnet map lan-10 --state unmanaged")]
    Map(MapArguments),
    /// Follow changes of subnets until Ctrl-C
    #[command(after_help = "Examples:\n  ipamctl subnet watch\n  ipamctl subnet watch lan-10 -o json")]
    Watch(WatchArguments),
    /// Create a subnet
    #[command(after_help = "Examples:
  ipamctl subnet create lan-10 --cidr 10.10.0.0/24 --gateway 10.10.0.1 --vlan 110
  ipamctl subnet create lan-11 --cidr 10.11.0.0/24 --automatic-range 10.11.0.64-10.11.0.127
  ipamctl subnet create lan-10-v6 --cidr 2001:db8:1::/64 --dns 2001:db8::53 --network lab")]
    Create(CreateArguments),
    /// Change a subnet; CIDR and network are immutable
    #[command(after_help = "Examples:
  ipamctl subnet set lan-10 --gateway 10.10.0.254
  ipamctl subnet set lan-10 --automatic --automatic-max-size 64
  ipamctl subnet set lan-10 --probe-conflicts true --probe-gateway true
  ipamctl subnet set lan-10 --route 10.99.0.0/16=10.10.0.2 --no-vlan")]
    Set(SetArguments),
    /// Delete a subnet that has no pools
    #[command(alias = "rm", after_help = "Examples:\n  ipamctl subnet delete lan-10")]
    Delete(Named),
}

/// A new subnet.
#[derive(Debug, Args)]
pub(crate) struct CreateArguments {
    /// Name
    name: Name,
    /// Address block of the subnet
    #[arg(long, value_parser = parse_cidr)]
    cidr: IpNet,
    /// Gateway address
    #[arg(long, value_parser = parse_address)]
    gateway: Option<IpAddr>,
    /// 802.1Q VLAN ID
    #[arg(long, value_name = "ID")]
    vlan: Option<u16>,
    /// MTU in bytes
    #[arg(long, value_name = "BYTES")]
    mtu: Option<u32>,
    #[command(flatten)]
    hosts: HostArguments,
    #[command(flatten)]
    automatic: AutomaticArguments,
    #[command(flatten)]
    probing: ProbingArguments,
    #[command(flatten)]
    metadata: MetadataArguments,
}

/// Routes and name resolution of its hosts.
#[derive(Debug, Args)]
struct HostArguments {
    /// Additional route; may be repeated
    #[arg(long = "route", value_name = "CIDR=GATEWAY", value_parser = parse_route)]
    routes: Vec<Route>,
    /// DNS server; may be repeated
    #[arg(long = "dns", value_name = "ADDRESS", value_parser = parse_address)]
    dns: Vec<IpAddr>,
    /// DNS domain
    #[arg(long, value_name = "DOMAIN")]
    dns_domain: Option<String>,
    /// DNS search domain; may be repeated
    #[arg(long, value_name = "DOMAIN")]
    dns_search: Vec<String>,
}

impl HostArguments {
    fn apply(&self, subnet: &mut Subnet) {
        add_routes(&mut subnet.routes, &self.routes);
        add_new(&mut subnet.dns.nameservers, &self.dns);
        add_new(&mut subnet.dns.search, &self.dns_search);
        if let Some(domain) = &self.dns_domain {
            subnet.dns.domain = Some(domain.clone()).filter(|domain| !domain.is_empty());
        }
    }
}

fn add_new<Item: Clone + PartialEq>(list: &mut Vec<Item>, more: &[Item]) {
    for item in more {
        if !list.contains(item) {
            list.push(item.clone());
        }
    }
}

/// Changes of a subnet.
#[derive(Debug, Args)]
pub(crate) struct SetArguments {
    /// Name
    name: Name,
    /// Only says why not
    #[arg(long, value_name = "CIDR", hide = true, value_parser = stays)]
    cidr: Option<IpNet>,
    /// Gateway address
    #[arg(long, value_parser = parse_address, conflicts_with = "no_gateway")]
    gateway: Option<IpAddr>,
    /// Remove the gateway
    #[arg(long)]
    no_gateway: bool,
    /// 802.1Q VLAN ID
    #[arg(long, value_name = "ID", conflicts_with = "no_vlan")]
    vlan: Option<u16>,
    /// Remove the VLAN ID
    #[arg(long)]
    no_vlan: bool,
    /// MTU in bytes
    #[arg(long, value_name = "BYTES", conflicts_with = "no_mtu")]
    mtu: Option<u32>,
    /// Remove the MTU
    #[arg(long)]
    no_mtu: bool,
    #[command(flatten)]
    hosts: HostArguments,
    /// Route to remove, by destination; may be repeated
    #[arg(long = "remove-route", value_name = "CIDR", value_parser = parse_cidr)]
    remove_routes: Vec<IpNet>,
    /// DNS server to remove; may be repeated
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    remove_dns: Vec<IpAddr>,
    /// DNS search domain to remove; may be repeated
    #[arg(long, value_name = "DOMAIN")]
    remove_dns_search: Vec<String>,
    #[command(flatten)]
    automatic: AutomaticChanges,
    #[command(flatten)]
    probing: ProbingArguments,
    #[command(flatten)]
    metadata: MetadataChanges,
}

fn stays(_: &str) -> Result<IpNet, String> {
    Err("the CIDR of a subnet is immutable; create another subnet with pools (ipamctl subnet create), and drain the \
         old pools to them (ipamctl pool drain POOL --to OTHER)"
        .to_owned())
}

impl SetArguments {
    fn apply(&self, subnet: &mut Subnet) -> Result<(), Failure> {
        let HostArguments { routes, dns, dns_search, dns_domain: _ } = &self.hosts;
        check_routes(routes, &self.remove_routes)?;
        check_apart(("--dns", dns), ("--remove-dns", &self.remove_dns), PartialEq::eq)?;
        check_apart(
            ("--dns-search", dns_search),
            ("--remove-dns-search", &self.remove_dns_search),
            PartialEq::eq,
        )?;
        replace(&mut subnet.gateway, self.gateway, self.no_gateway);
        replace(&mut subnet.vlan, self.vlan, self.no_vlan);
        replace(&mut subnet.mtu, self.mtu, self.no_mtu);
        subnet.routes.retain(|route| !self.remove_routes.contains(&route.destination));
        subnet.dns.nameservers.retain(|server| !self.remove_dns.contains(server));
        subnet.dns.search.retain(|domain| !self.remove_dns_search.contains(domain));
        self.hosts.apply(subnet);
        self.automatic.apply(&mut subnet.automatic)?;
        self.probing.apply(&mut subnet.probing);
        self.metadata.apply(subnet)
    }
}

/// Runs a verb.
pub(crate) async fn run(session: &Session, verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Watch(arguments) => watch::run(session, Watched::Named("subnet"), &arguments).await,
        Verb::Map(arguments) => map::run(session, "subnets", &arguments).await,
        Verb::List => {
            let keep = |found: &Read<Subnet>| session.fits_network(&found.spec.network);
            let filters = session.narrowed("subnets", &[Part::Network])?;
            resource::show_list(session, filters, keep, table).await
        }
        Verb::Show(Named { name }) => resource::show(session, &name, shown).await,
        Verb::Create(arguments) => create(session, arguments).await,
        Verb::Set(arguments) => set(session, &arguments).await,
        // No confirmation is needed: a subnet with pools is refused, and an empty one is easily re-created.
        Verb::Delete(Named { name }) => resource::delete::<Subnet>(session, &name, false).await,
    }
}

async fn set(session: &Session, arguments: &SetArguments) -> Result<(), Failure> {
    let name = &arguments.name;
    let mut before = None;
    if arguments.gateway.is_some() || arguments.no_gateway {
        before = Some(resource::fetch::<Subnet>(session, name).await?.0.spec.gateway);
    }
    resource::edit::<Subnet>(session, name, |subnet, _| arguments.apply(subnet)).await?;
    if let Some(old) = before.filter(|old| *old != arguments.gateway) {
        gateway::tell_of_subnet(session, name, old).await;
    }
    Ok(())
}

async fn create(session: &Session, arguments: CreateArguments) -> Result<(), Failure> {
    let network = session.network_or_default();
    let mut subnet = Subnet {
        gateway: arguments.gateway,
        vlan: arguments.vlan,
        mtu: arguments.mtu,
        automatic: arguments.automatic.rules(),
        ..with_defaults(json!({"name": arguments.name, "network": network, "cidr": arguments.cidr}))?
    };
    arguments.hosts.apply(&mut subnet);
    arguments.probing.apply(&mut subnet.probing);
    arguments.metadata.apply(&mut subnet)?;
    let created = resource::create(session, &subnet).await;
    resource::suggest(session, created, "networks", subnet.network.as_str()).await
}

fn table(subnets: &[Read<Subnet>], wide: bool, _now: Timestamp) -> Table {
    Table::of(subnets)
        .text("NAME", |found| &found.spec.name)
        .spare("NETWORK", 3, |found| &found.spec.network)
        .text("CIDR", |found| found.spec.cidr)
        .text("GATEWAY", |found| text::or_dash(found.spec.gateway.as_ref()))
        .spare("VLAN", 2, |found| text::or_dash(found.spec.vlan.as_ref()))
        .number("POOLS", |found| text::count(found.status.pools))
        .number("HELD", |found| text::count(found.status.allocated))
        .spare("LABELS", 5, |found| text::labels(&found.spec.labels))
        .only_if(wide)
        .spare("ROUTES", 6, |found| text::joined(found.spec.routes.iter().map(route)))
        .spare("DNS", 7, |found| text::joined(&found.spec.dns.nameservers))
        .spare("DESCRIPTION", 8, |found| text::dash(&found.spec.description))
        .table()
}

fn shown(subnet: &Read<Subnet>) -> String {
    let spec = &subnet.spec;
    let mut fields = resource::heading(subnet, Some(&spec.network));
    fields.line("cidr", spec.cidr);
    fields.line("gateway", text::or_dash(spec.gateway.as_ref()));
    fields.line("vlan", text::or_dash(spec.vlan.as_ref()));
    fields.line_if("mtu", &spec.mtu.map(|mtu| mtu.to_string()).unwrap_or_default());
    fields.line_if("routes", &text::joined(spec.routes.iter().map(route)));
    fields.line_if("dns", &text::joined(&spec.dns.nameservers));
    fields.line_if("domain", spec.dns.domain.as_deref().unwrap_or_default());
    fields.line_if("search", &text::joined(&spec.dns.search));
    fields.line_if("options", &text::joined(&spec.dns.options));
    fields.line("automatic pools", automatic::shown(spec.automatic.as_ref()));
    fields.line_if("probes", &probing::shown(&spec.probing));
    fields.line(
        "holds",
        format!(
            "{} in {}",
            text::plural(subnet.status.allocated, "address", "addresses"),
            text::plural(subnet.status.pools, "pool", "pools")
        ),
    );
    count_lines(&mut fields, &subnet.status.counts, &text::count(subnet.status.counts.size), "", true);
    resource::metadata_lines(&mut fields, subnet);
    fields.text()
}
