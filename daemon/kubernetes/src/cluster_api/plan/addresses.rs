//! Plan of a pool of addresses.

use ipam_api::address::AddressRange;
use ipam_api::cluster_api::IpPoolSpec;
use ipam_api::limits::COOLING_MS_MAX;
use ipam_api::name::Name;
use ipam_api::{Family, Problem, RangeSet};
use ipnet::IpNet;

use super::{Plan, Sets, entries, reference, refusal, saturated, subnet};

const ADDRESSES: &str = "/addresses";
const PREFIX: &str = "/prefix";
const EXCLUDED: &str = "/excludedAddresses";
const GRACE: &str = "/addressReuseGracePeriodSeconds";

const NOT_ADDRESS: &str = "provided address is not a valid IP, range, nor CIDR";
const MIXED: &str = "provided addresses are of mixed IP families";
const MIXED_GATEWAY: &str = "provided gateway and addresses are of mixed IP families";
const MIXED_EXCLUDED: &str = "addresses and excluded addresses are of mixed IP families";

const MS_PER_S: u64 = 1000;

/// Pool of ipamd that an `IPPool` or a `GlobalIPPool` names in place of addresses.
///
/// # Errors
/// `invalid-field` if the spec has addresses as well.
pub(crate) fn reference_of_addresses(spec: &IpPoolSpec) -> Result<Option<&Name>, Problem> {
    let lists = [("addresses", &*spec.addresses), ("excludedAddresses", &*spec.excluded_addresses)];
    reference(spec.pool_ref.as_ref(), lists)
}

/// Plan of an `IPPool` or a `GlobalIPPool` without `poolRef`.
///
/// # Errors
/// `invalid-field` with the field.
pub(crate) fn of_addresses(spec: &IpPoolSpec) -> Result<Plan, Problem> {
    reference_of_addresses(spec)?;
    let (addresses, span) = addresses(spec)?;
    let net = subnet_of(spec, &span)?;
    let sets = sets(spec, &addresses, net)?;
    let whole = AddressRange::of_cidr(net);
    if let Some(index) = addresses.iter().position(|entry| !whole.contains(entry)) {
        let detail = format!("provided address belongs to a different subnet than others: {}", net.trunc());
        return Err(refusal(detail, entries::at(ADDRESSES, index)));
    }
    Ok(Plan {
        span,
        subnet: subnet::accepted(net, &span, ADDRESSES)?,
        ranges: sets.ranges.ranges().collect(),
        exclude: sets.exclude(EXCLUDED)?,
        cooling_ms: cooling_ms(spec)?,
        total: saturated(sets.allocatable().size()),
    })
}

/// Entries of `addresses`, which are of one family, and the range from the lowest address to the highest.
pub(super) fn addresses(spec: &IpPoolSpec) -> Result<(Vec<AddressRange>, AddressRange), Problem> {
    let entries = entries::read(&spec.addresses, ADDRESSES, NOT_ADDRESS, entries::range)?;
    let Some(first) = entries.first() else {
        return Err(refusal("addresses is required", ADDRESSES));
    };
    if let Some(index) = entries::odd_family(&entries, first.family()) {
        return Err(refusal(MIXED, entries::at(ADDRESSES, index)));
    }
    let span = entries::span(*first, &entries);
    Ok((entries, span))
}

/// Subnet of the spec: the lowest address with `prefix`. The order of the entries is irrelevant.
pub(super) fn subnet_of(spec: &IpPoolSpec, span: &AddressRange) -> Result<IpNet, Problem> {
    let length = spec.prefix.ok_or_else(|| refusal("a valid prefix is required", PREFIX))?;
    IpNet::new(span.first_address(), length).map_err(|_| {
        let family = span.family();
        let bits = family.bits();
        refusal(format!("provided prefix is not valid: {length} is above {bits}, for {family}"), PREFIX)
    })
}

/// Sets of the entries in a subnet. Entries outside of it are not refused here.
pub(super) fn sets(spec: &IpPoolSpec, addresses: &[AddressRange], net: IpNet) -> Result<Sets, Problem> {
    let family = Family::of(net.addr());
    let gateway = entries::gateway(spec.gateway.as_deref(), family, MIXED_GATEWAY)?;
    let mut never = excluded(spec, family)?;
    never.extend(gateway.map(AddressRange::single));
    if !spec.allocate_reserved_ip_addresses {
        never.extend(subnet::reserved(net).into_iter().map(AddressRange::single));
    }
    Ok(Sets::new(RangeSet::new(family, addresses), &RangeSet::new(family, &never)))
}

/// Entries of `excludedAddresses`. They may lie outside of the addresses.
fn excluded(spec: &IpPoolSpec, family: Family) -> Result<Vec<AddressRange>, Problem> {
    let entries = entries::read(&spec.excluded_addresses, EXCLUDED, NOT_ADDRESS, entries::range)?;
    match entries::odd_family(&entries, family) {
        Some(index) => Err(refusal(MIXED_EXCLUDED, entries::at(EXCLUDED, index))),
        None => Ok(entries),
    }
}

/// Cooling time for the grace period.
fn cooling_ms(spec: &IpPoolSpec) -> Result<Option<u64>, Problem> {
    let Some(seconds) = spec.address_reuse_grace_period_seconds else { return Ok(None) };
    let cooling_ms = u64::from(seconds) * MS_PER_S;
    if cooling_ms > COOLING_MS_MAX {
        let most = COOLING_MS_MAX / MS_PER_S;
        return Err(refusal(
            format!("{seconds} seconds are too long; an address cools at most {most}"),
            GRACE,
        ));
    }
    Ok(Some(cooling_ms))
}
