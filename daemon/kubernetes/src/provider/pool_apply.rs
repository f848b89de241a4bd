//! Resources of the servers for one pool: network, subnet and pool.

use ipam_api::client::{Answer, Call, Expect, with_query};
use ipam_api::cluster_api::ALLOCATION_PREFIX_LENGTH_DEFAULT;
use ipam_api::limits::CLUSTER_API_OUT_OF_RANGE_MAX;
use ipam_api::name::Name;
use ipam_api::resource::{
    Allocation, Labels, Page, Pool, PoolStatus, Prefix, Resource, Subnet, SubnetStatus,
};
use ipam_api::{AddressRange, Code, Family, Problem, RangeSet};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::grant::REQUEST;
use super::shared::Shared;
use super::views::ReadyPool;
use crate::cluster_api::{
    Names, Plan, PoolCounts, PoolFacts, PoolKey, PoolSpec, foreign_name, names, network,
    network_of_namespace, number_of_blocks, of_addresses, of_prefixes, pool_resource, reference_of_addresses,
    reference_of_prefixes, subnet, subnet_name,
};
use crate::servers::{Servers, path};

type PoolView = Resource<Pool, PoolStatus>;
type SubnetView = Resource<Subnet, SubnetStatus>;

/// Resources of the servers for a pool, and the refusal of its spec.
#[derive(Debug, Default)]
pub(super) struct Applied {
    /// Pool that serves claims.
    pub(super) ready: Option<ReadyPool>,
    /// Refusal of the present spec.
    pub(super) refusal: Option<Problem>,
    pub(super) counts: Option<PoolCounts>,
}

/// Applies the spec of a pool.
///
/// # Errors
/// A refusal while the pool does not exist, and any failure.
pub(super) async fn apply(
    shared: &Shared<impl Servers>,
    key: &PoolKey,
    facts: &PoolFacts,
) -> Result<Applied, Problem> {
    let spec = facts.spec.as_ref().map_err(Clone::clone)?;
    if spec.reference().is_some() {
        return referenced(shared, key, spec).await;
    }
    let plan = plan(spec)?;
    let names = names(&shared.settings.realm, key);
    let present = present(shared, &names).await?;
    let turn = shared.pools_in_servers.lock().await;
    let put = put(shared, key, (spec, &plan), &names, present.as_ref()).await;
    drop(turn);
    let (view, refusal) = match put {
        Ok(view) => (view, None),
        Err(problem) => match present {
            Some(view) if problem.code != Code::Terminating => (view, Some(problem)),
            _ => return Err(problem),
        },
    };
    let counts = match spec {
        PoolSpec::Addresses(_) => {
            let outside = match &refusal {
                Some(_) => out_of_range(shared, &view, &plan).await?,
                None => 0,
            };
            PoolCounts::of_addresses(&view.status.counts, plan.total, outside)
        }
        PoolSpec::Prefixes(_) => match &refusal {
            None => PoolCounts::of_prefixes(plan.total, delegated(shared, &view, None).await?.0),
            Some(_) => {
                let (used, out_of_range) = delegated(shared, &view, Some(&plan)).await?;
                let length = ready(spec, &view)?.length.unwrap_or_default();
                let total = number_of_blocks(view.status.family, &view.spec, length);
                PoolCounts { out_of_range, ..PoolCounts::of_prefixes(total, used) }
            }
        },
    };
    let ready = ready(spec, &view)?;
    Ok(Applied { ready: Some(ready), refusal, counts: Some(counts) })
}

fn plan(spec: &PoolSpec) -> Result<Plan, Problem> {
    match spec {
        PoolSpec::Addresses(spec) => of_addresses(spec),
        PoolSpec::Prefixes(spec) => of_prefixes(spec),
    }
}

/// Pool that exists under the name for an object.
async fn present(shared: &Shared<impl Servers>, names: &Names) -> Result<Option<PoolView>, Problem> {
    let view: Option<PoolView> = get(shared, path(&["pools", names.pool.as_str()])).await?;
    if let Some(view) = &view {
        check_own(shared, "pool", names.pool.as_str(), &view.spec.annotations, &names.foreign)?;
    }
    Ok(view)
}

/// Writes the pool if it differs, and its network and subnet before.
async fn put(
    shared: &Shared<impl Servers>,
    key: &PoolKey,
    (spec, plan): (&PoolSpec, &Plan),
    names: &Names,
    present: Option<&PoolView>,
) -> Result<PoolView, Problem> {
    let network = network_name(shared, key, spec)?;
    let subnet = match present {
        Some(view) => {
            check_kept(view, plan, &network.name)?;
            view.spec.subnet.clone()
        }
        None => subnet_for(shared, &network, plan).await?,
    };
    let realm = &shared.settings.realm;
    let wanted = pool_resource(names, key, (realm, &shared.settings.manager()), &subnet, plan);
    let mut wanted: Pool = read(wanted)?;
    let Some(view) = present else {
        let call = Call::put(path(&["pools", names.pool.as_str()])).json(&wanted)?.expect(Expect::Absent);
        return send(shared, call).await?.read();
    };
    if view.spec.terminating {
        let detail = format!("pool {} is being deleted, and ends with its last address", names.pool);
        return Err(Problem::new(Code::Terminating, detail));
    }
    // Settings of an administrator that the object's spec doesn't determine stay.
    wanted.network.clone_from(&view.spec.network);
    wanted.disabled = view.spec.disabled;
    wanted.drains_to.clone_from(&view.spec.drains_to);
    if wanted == view.spec {
        return Ok(view.clone());
    }
    let call = Call::put(path(&["pools", names.pool.as_str()])).json(&wanted)?;
    send(shared, call.expect(Expect::Revision(view.meta.revision))).await?.read()
}

/// Network of a pool, and whether the provider creates it.
struct Network {
    name: Name,
    /// Original name of a network that the provider creates.
    foreign: Option<String>,
}

fn network_name(shared: &Shared<impl Servers>, key: &PoolKey, spec: &PoolSpec) -> Result<Network, Problem> {
    let own = key.namespace.as_ref().filter(|_| shared.settings.network_per_namespace);
    match (own, spec.network()) {
        (Some(_), Some(_)) => {
            let detail = "each namespace has a network of its own here";
            Err(Problem::new(Code::InvalidField, detail).at("/network").help("Leave the field out."))
        }
        (Some(namespace), None) => {
            let (name, foreign) = network_of_namespace(&shared.settings.realm, namespace.as_str());
            Ok(Network { name, foreign: Some(foreign) })
        }
        (None, named) => {
            Ok(Network { name: named.cloned().unwrap_or_else(Name::default_name), foreign: None })
        }
    }
}

/// Refuses a spec whose pool would have to move to another subnet.
fn check_kept(view: &PoolView, plan: &Plan, network: &Name) -> Result<(), Problem> {
    let fixed = |detail: String, at: &str| {
        Err(Problem::new(Code::ImmutableField, detail).at(at).help("Create another pool."))
    };
    if view.spec.network.as_ref() != Some(network) {
        return fixed("the network of a pool can't be changed".to_owned(), "/network");
    }
    if !AddressRange::of_cidr(view.status.cidr).contains(&plan.span) {
        let detail = format!("the addresses of the pool have to stay in its subnet {}", view.status.cidr);
        return fixed(detail, "/addresses");
    }
    Ok(())
}

/// Name of a subnet that contains the addresses. It is created unless there is one.
async fn subnet_for(shared: &Shared<impl Servers>, network: &Network, plan: &Plan) -> Result<Name, Problem> {
    let manager = shared.settings.manager();
    if let Some(foreign) = &network.foreign {
        let own = path(&["networks", network.name.as_str()]);
        match get::<Resource<ipam_api::resource::Network, Value>>(shared, own.clone()).await? {
            Some(found) => {
                check_own(shared, "network", network.name.as_str(), &found.spec.annotations, foreign)?;
            }
            None => {
                let body = self::network(&network.name, foreign, &manager);
                send(shared, Call::put(own).json(&body)?.expect(Expect::Absent)).await?;
            }
        }
    }
    let list = with_query("/v1/subnets", "network", network.name.as_str());
    let list = with_query(&list, "contains", &plan.span.first_address().to_string());
    let found: Page<SubnetView> = send(shared, Call::get(list)).await?.read()?;
    let mut found = found.items.into_iter();
    if let Some(subnet) = found.find(|one| AddressRange::of_cidr(one.spec.cidr).contains(&plan.span)) {
        return Ok(subnet.spec.name);
    }
    let (name, foreign) = subnet_name(&network.name, plan.subnet);
    let body = subnet(&name, &foreign, &network.name, plan.subnet, &manager);
    let call = Call::put(path(&["subnets", name.as_str()])).json(&body)?.expect(Expect::Absent);
    send(shared, call).await?;
    Ok(name)
}

/// Pool of ipamd that an object refers to. The provider never changes it.
async fn referenced(
    shared: &Shared<impl Servers>,
    key: &PoolKey,
    spec: &PoolSpec,
) -> Result<Applied, Problem> {
    let named = match spec {
        PoolSpec::Addresses(spec) => reference_of_addresses(spec)?,
        PoolSpec::Prefixes(spec) => reference_of_prefixes(spec)?,
    };
    let Some(name) = named else { return Ok(Applied::default()) };
    let view: Option<PoolView> = get(shared, path(&["pools", name.as_str()])).await?;
    let missing = || Problem::new(Code::NotFound, format!("pool {name} does not exist"));
    let view = view.ok_or_else(|| missing().at("/poolRef/name"))?;
    let permits = |all: &[_], one: Option<&_>| all.is_empty() || one.is_some_and(|one| all.contains(one));
    let is_permitted = (view.spec.realms.is_empty() || view.spec.realms.contains(&shared.settings.realm))
        && (key.namespace.is_none() || permits(&view.spec.namespaces, key.namespace.as_ref()));
    if !is_permitted {
        let detail = format!("pool {name} is for other realms or namespaces");
        return Err(Problem::new(Code::Forbidden, detail)
            .at("/poolRef/name")
            .help("Name another pool, or add the realm and the namespace to the pool."));
    }
    let ready = ready(spec, &view)?;
    let counts = match ready.length {
        None => PoolCounts::of_addresses(&view.status.counts, i64::MAX as u64, 0),
        Some(length) => {
            let addresses = u32::from(view.status.family.bits() - length.min(view.status.family.bits()));
            let total = view.status.counts.size.checked_shr(addresses).unwrap_or_default();
            PoolCounts::of_prefixes(total, delegated(shared, &view, None).await?.0)
        }
    };
    Ok(Applied { ready: Some(ready), refusal: None, counts: Some(counts) })
}

fn ready(spec: &PoolSpec, view: &PoolView) -> Result<ReadyPool, Problem> {
    let family = view.status.family;
    let length = match (spec, family) {
        (PoolSpec::Addresses(_), _) => None,
        (PoolSpec::Prefixes(spec), Family::V6) => {
            Some(spec.allocation_prefix_length.unwrap_or(ALLOCATION_PREFIX_LENGTH_DEFAULT))
        }
        (PoolSpec::Prefixes(spec), Family::V4) => {
            let missing =
                || Problem::new(Code::InvalidField, "an IPv4 pool needs the length of its prefixes");
            Some(spec.allocation_prefix_length.ok_or_else(|| missing().at("/allocationPrefixLength"))?)
        }
    };
    let prefix = match spec {
        PoolSpec::Addresses(spec) => spec.prefix,
        PoolSpec::Prefixes(_) => None,
    };
    let gateway = spec.gateway().map(str::to_owned);
    Ok(ReadyPool { name: view.spec.name.clone(), family, length, prefix, gateway })
}

/// Number of allocated addresses that a refused spec does not contain, among the first allocations.
async fn out_of_range(shared: &Shared<impl Servers>, view: &PoolView, plan: &Plan) -> Result<u64, Problem> {
    let wanted = plan.allocatable();
    let list = with_query("/v1/allocations", "pool", view.spec.name.as_str());
    let list = with_query(&list, "limit", "1000");
    let (mut read, mut outside, mut next) = (0, 0, None::<String>);
    loop {
        let mut call = Call::get(list.as_str());
        if let Some(cursor) = &next {
            call = call.query("cursor", cursor);
        }
        let page: Page<Allocation> = send(shared, call).await?.read()?;
        read += page.items.len();
        let numbers = page.items.iter().map(|one| AddressRange::single(one.address.addr()).first());
        outside += numbers.filter(|number| !wanted.contains(*number)).count() as u64;
        next = page.next;
        if next.is_none() || read >= CLUSTER_API_OUT_OF_RANGE_MAX {
            return Ok(outside);
        }
    }
}

/// Number of prefixes cut from a pool, and the number of these that a refused spec does not contain.
async fn delegated(
    shared: &Shared<impl Servers>,
    view: &PoolView,
    refused: Option<&Plan>,
) -> Result<(u64, u64), Problem> {
    if view.status.counts.allocated == 0 {
        return Ok((0, 0));
    }
    let wanted = refused.map(Plan::allocatable);
    let (mut found, mut outside) = (0, 0);
    let list = with_query("/v1/prefixes", "pool", view.spec.name.as_str());
    crate::servers::each(&shared.servers, &list, |prefix: Prefix| {
        if let (None, Some(cidr)) = (prefix.parent, prefix.cidr) {
            let block = RangeSet::new(view.status.family, &[AddressRange::of_cidr(cidr)]);
            found += 1;
            outside += u64::from(wanted.as_ref().is_some_and(|wanted| !block.minus(wanted).is_empty()));
        }
    })
    .await?;
    Ok((found, outside))
}

/// Deletes the resources of a pool. Returns false while the pool holds addresses.
///
/// # Errors
/// Any failure.
pub(super) async fn remove(
    shared: &Shared<impl Servers>,
    key: &PoolKey,
    facts: &PoolFacts,
) -> Result<bool, Problem> {
    let names = names(&shared.settings.realm, key);
    let manager = shared.settings.manager();
    let view = match present(shared, &names).await {
        Ok(view) => view,
        // The pool of this name never belonged to the object.
        Err(problem) if problem.code == Code::ManagedElsewhere => return Ok(true),
        Err(problem) => return Err(problem),
    };
    if let Some(view) = view {
        let call = Call::delete(path(&["pools", names.pool.as_str()]));
        let call = call.query("manager", &manager).query("drain", "true");
        let call = call.expect(Expect::Revision(view.meta.revision));
        let drains = view.spec.terminating
            || match send(shared, call).await {
                Ok(answer) => !answer.body.is_empty(),
                Err(problem) if problem.code == Code::NotFound => false,
                Err(problem) => return Err(problem),
            };
        if drains {
            return Ok(false);
        }
    }
    let Some(spec) = facts.spec.as_ref().ok().filter(|spec| spec.reference().is_none()) else {
        return Ok(true);
    };
    if let (Ok(plan), Ok(network)) = (plan(spec), network_name(shared, key, spec)) {
        // Other pools may need the subnet and the network still.
        let (subnet, _) = subnet_name(&network.name, plan.subnet);
        discard(shared, path(&["subnets", subnet.as_str()]), &manager).await?;
        if network.foreign.is_some() {
            discard(shared, path(&["networks", network.name.as_str()]), &manager).await?;
        }
    }
    Ok(true)
}

/// Deletes a resource of this manager that is not in use.
async fn discard(shared: &Shared<impl Servers>, path: String, manager: &str) -> Result<(), Problem> {
    match send(shared, Call::delete(path).query("manager", manager)).await {
        Err(problem) if !matches!(problem.code, Code::NotFound | Code::InUse | Code::ManagedElsewhere) => {
            Err(problem)
        }
        _ => Ok(()),
    }
}

/// Refuses a resource that another manager, or another object, uses.
fn check_own(
    shared: &Shared<impl Servers>,
    kind: &str,
    name: &str,
    annotations: &Labels,
    foreign: &str,
) -> Result<(), Problem> {
    if foreign_name(foreign).iter().all(|(key, text)| annotations.get(key) == Some(text)) {
        return Ok(());
    }
    let manager = shared.settings.manager();
    let detail = format!("{kind} {name} exists, and is no resource of {manager} for {foreign}");
    Err(Problem::new(Code::ManagedElsewhere, detail)
        .help("Rename the object, or delete the resource with the tool that created it."))
}

async fn send(shared: &Shared<impl Servers>, call: Call) -> Result<Answer, Problem> {
    shared.servers.send(call.within(REQUEST)).await
}

async fn get<T: DeserializeOwned>(shared: &Shared<impl Servers>, path: String) -> Result<Option<T>, Problem> {
    match send(shared, Call::get(path)).await {
        Ok(answer) => answer.read().map(Some),
        Err(problem) if problem.code == Code::NotFound => Ok(None),
        Err(problem) => Err(problem),
    }
}

fn read<T: DeserializeOwned>(value: Value) -> Result<T, Problem> {
    serde_json::from_value(value).map_err(|error| Problem::new(Code::Internal, error.to_string()))
}
