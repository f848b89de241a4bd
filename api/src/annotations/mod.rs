//! Spiderpool's annotations, accepted unchanged, so that a migration needs no edits.
//!
//! An annotated request is first converted to the equivalent request of this API. Every client that may send
//! a request may send annotations: the plugin, the agent and any other HTTP client.
//!
//! Mistakes are rejected, also those that Spiderpool ignores. The first of `subnets`, `subnet`, `ippools` and
//! `ippool` that is present counts, as with Spiderpool. Of other systems only the networks of Multus are
//! read; they name the network attachment of each interface.

mod members;
mod namespace;
mod networks;
mod read;

use crate::Problem;
use crate::name::{InterfaceName, Name, NamePattern};
use crate::request::{AllocateRequest, AutomaticPool, InterfaceRequest};
use crate::resource::PoolSize;
pub use namespace::{DefaultPools, default_pools, is_of_namespaces};
pub use networks::attachments;
use read::{Item, Overrides, read, wrong};

/// Prefix of Spiderpool's annotations.
pub const PREFIX: &str = "ipam.spidernet.io/";

/// Subnets of several interfaces.
const SUBNETS: &str = "subnets";
/// Subnets of one interface.
const SUBNET: &str = "subnet";
/// Pools of several interfaces.
const POOLS: &str = "ippools";
/// Pools of the requesting interface.
const POOL: &str = "ippool";
/// Number of addresses of an automatic pool.
const IP_NUMBER: &str = "ippool-ip-number";
/// True if an automatic pool is deleted with its application.
const RECLAIM: &str = "ippool-reclaim";
/// Older name of [`RECLAIM`].
const RECLAIM_OLD: &str = "reclaim-ippool";
/// Routes.
const ROUTES: &str = "routes";
/// The interface with the default route.
const DEFAULT_ROUTE: &str = "default-route-nic";
/// Annotations and labels of Spiderpool without effect on a request: one that Spiderpool never reads, its
/// status reports, and the labels of its pools.
const IGNORED: [&str; 18] = [
    "dns",
    "cdi-version",
    "network-status",
    "owner-spider-subnet",
    "owner-application-gv",
    "owner-application-kind",
    "owner-application-namespace",
    "owner-application-name",
    "owner-application-uid",
    "interface",
    "ip-version",
    "subnet-cidr",
    "ippool-cidr",
    "app-api-group",
    "app-api-version",
    "app-kind",
    "app-namespace",
    "app-name",
];
/// All known annotations, without the prefix.
const KNOWN: [&str; 9] =
    [SUBNETS, SUBNET, POOLS, POOL, IP_NUMBER, RECLAIM, ROUTES, DEFAULT_ROUTE, RECLAIM_OLD];
/// True for an annotation that a request needs. Others need not be sent.
#[must_use]
pub fn is_read(name: &str) -> bool {
    name.starts_with(PREFIX) || networks::NAMES.contains(&name)
}

fn key(word: &str) -> String {
    format!("{PREFIX}{word}")
}

/// Converts the annotations of a request into its other fields.
///
/// # Errors
/// `invalid-field`, `unknown-field` or `limit-exceeded`, with the annotation that is invalid or that
/// contradicts the request or another annotation.
pub fn taken_in(mut request: AllocateRequest) -> Result<AllocateRequest, Problem> {
    let annotations = std::mem::take(&mut request.annotations);
    if annotations.is_empty() {
        return Ok(request);
    }
    let Overrides { subnets, subnet, pools, pool, size, reclaim, routes, default_route_interface } =
        read(&annotations)?;
    let are_listed = subnets.is_some() || pools.is_some();
    if let Some(items) = subnets {
        no_subnet_twice(&items)?;
        list(&mut request, SUBNETS, items, by_subnet)?;
        automatic(&mut request, size, reclaim)?;
    } else if let Some(item) = subnet {
        one(&mut request, SUBNET, &item, by_subnet)?;
        automatic(&mut request, size, reclaim)?;
    } else if let Some(items) = pools {
        list(&mut request, POOLS, items, by_pool)?;
    } else if let Some(item) = pool {
        one(&mut request, POOL, &item, by_pool)?;
    }
    if !routes.is_empty() {
        agree(ROUTES, "routes", request.routes.is_empty() || request.routes == routes)?;
        request.routes = routes;
    }
    if let Some(interface) = default_route_interface {
        let overrides = request.default_route_interface.as_ref();
        agree(
            DEFAULT_ROUTE,
            "default_route_interface",
            overrides.is_none_or(|overrides| *overrides == interface),
        )?;
        if are_listed && request.interfaces.iter().all(|one| one.name != interface) {
            return Err(wrong(
                DEFAULT_ROUTE,
                &format!("names {interface}, which is none of the interfaces listed"),
            ));
        }
        request.default_route_interface = Some(interface);
    }
    networks::apply(&mut request, &annotations);
    Ok(request)
}

fn agree(word: &str, field: &str, agrees: bool) -> Result<(), Problem> {
    if agrees {
        return Ok(());
    }
    Err(wrong(word, &format!("and {field} of the request contradict each other"))
        .help("Say it in one of the two places."))
}

fn by_pool(interface: &mut InterfaceRequest, item: &Item<NamePattern>) {
    interface.ipv4_pools.clone_from(&item.ipv4);
    interface.ipv6_pools.clone_from(&item.ipv6);
}

/// Spiderpool uses the first subnet of each family and ignores the others.
fn by_subnet(interface: &mut InterfaceRequest, item: &Item<Name>) {
    interface.subnets = item.ipv4.first().into_iter().chain(item.ipv6.first()).cloned().collect();
}

/// Applies one annotation to one interface.
fn say<N>(
    interface: &mut InterfaceRequest,
    word: &str,
    item: &Item<N>,
    take: impl Fn(&mut InterfaceRequest, &Item<N>),
) -> Result<(), Problem> {
    let is_silent =
        interface.subnets.is_empty() && interface.ipv4_pools.is_empty() && interface.ipv6_pools.is_empty();
    agree(word, &format!("interface {}", interface.name), is_silent)?;
    take(interface, item);
    interface.clean_gateway |= item.cleangateway;
    Ok(())
}

/// Applies an annotation that lists interfaces. The list must contain all interfaces of the request; its
/// other interfaces are added to the request.
fn list<N>(
    request: &mut AllocateRequest,
    word: &str,
    items: Vec<Item<N>>,
    take: impl Fn(&mut InterfaceRequest, &Item<N>),
) -> Result<(), Problem> {
    let mut listed = Vec::with_capacity(items.len());
    for (place, item) in items.into_iter().enumerate() {
        let name = match &item.interface {
            Some(name) => name.clone(),
            None => InterfaceName::usual(place)?,
        };
        listed.push((name, item));
    }
    if let Some(missing) =
        request.interfaces.iter().find(|one| listed.iter().all(|(name, _)| *name != one.name))
    {
        let names: Vec<&str> = listed.iter().map(|(name, _)| name.as_str()).collect();
        let why = format!("names {}, and {} is asked for", names.join(", "), missing.name);
        return Err(wrong(word, &why).help(format!("Name {} in it as well.", missing.name)));
    }
    for (name, item) in listed {
        if let Some(interface) = request.interfaces.iter_mut().find(|one| one.name == name) {
            say(interface, word, &item, &take)?;
        } else {
            let mut interface = InterfaceRequest::blank(name);
            say(&mut interface, word, &item, &take)?;
            request.interfaces.push(interface);
        }
    }
    Ok(())
}

/// Applies an annotation to the requesting interface. Its `interface` is ignored, as in Spiderpool.
fn one<N>(
    request: &mut AllocateRequest,
    word: &str,
    item: &Item<N>,
    take: impl Fn(&mut InterfaceRequest, &Item<N>),
) -> Result<(), Problem> {
    let own = request.attachment.as_ref().map(|key| key.interface.clone());
    let meant = |interface: &&mut InterfaceRequest| own.as_ref().is_none_or(|own| *own == interface.name);
    request.interfaces.iter_mut().filter(meant).try_for_each(|interface| say(interface, word, item, &take))
}

fn no_subnet_twice(items: &[Item<Name>]) -> Result<(), Problem> {
    let firsts =
        |item: &Item<Name>| item.ipv4.first().into_iter().chain(item.ipv6.first()).cloned().collect();
    let mut names: Vec<Name> = items.iter().flat_map(|item| -> Vec<Name> { firsts(item) }).collect();
    names.sort();
    match names.windows(2).find(|pair| matches!(pair, [one, other] if one == other)) {
        Some([name, ..]) => Err(wrong(SUBNETS, &format!("names subnet {name} twice"))
            .help("Each interface has a subnet of its own.")),
        _ => Ok(()),
    }
}

/// Requests automatic pools of the application from the subnets that annotations name.
fn automatic(
    request: &mut AllocateRequest,
    size: Option<PoolSize>,
    reclaim: Option<bool>,
) -> Result<(), Problem> {
    if let Some(overrides) = &request.automatic_pool {
        agree(IP_NUMBER, "automatic_pool.size", size.is_none_or(|size| size == overrides.size))?;
        return agree(
            RECLAIM,
            "automatic_pool.reclaim",
            reclaim.is_none_or(|reclaim| reclaim == overrides.reclaim),
        );
    }
    let usual = AutomaticPool::default();
    request.automatic_pool =
        Some(AutomaticPool { size: size.unwrap_or(usual.size), reclaim: reclaim.unwrap_or(usual.reclaim) });
    Ok(())
}

#[cfg(test)]
mod tests;
