//! Plan of a pool of prefixes.

use ipam_api::address::AddressRange;
use ipam_api::cluster_api::{ALLOCATION_PREFIX_LENGTH_DEFAULT, PrefixPoolSpec};
use ipam_api::name::Name;
use ipam_api::{Family, Problem, RangeSet};
use ipnet::IpNet;

use super::{Plan, Sets, blocks, entries, reference, refusal, saturated, subnet};

const PREFIXES: &str = "/prefixes";
const EXCLUDED: &str = "/excludedPrefixes";
const LENGTH: &str = "/allocationPrefixLength";

const NOT_CIDR: &str = "provided entry is not a valid IPv6 CIDR, nor one of IPv4";
const NOT_EXCLUSION: &str = "provided entry is not a valid IP, range, nor CIDR";

/// Pool of ipamd that a `PrefixPool` or a `GlobalPrefixPool` names in place of prefixes.
///
/// # Errors
/// `invalid-field` if the spec has prefixes as well.
pub(crate) fn reference_of_prefixes(spec: &PrefixPoolSpec) -> Result<Option<&Name>, Problem> {
    let lists = [("prefixes", &*spec.prefixes), ("excludedPrefixes", &*spec.excluded_prefixes)];
    reference(spec.pool_ref.as_ref(), lists)
}

/// Plan of a `PrefixPool` or a `GlobalPrefixPool` without `poolRef`.
///
/// # Errors
/// `invalid-field` with the field.
pub(crate) fn of_prefixes(spec: &PrefixPoolSpec) -> Result<Plan, Problem> {
    reference_of_prefixes(spec)?;
    let prefixes = entries::read(&spec.prefixes, PREFIXES, NOT_CIDR, entries::cidr)?;
    let ranges: Vec<AddressRange> = prefixes.iter().copied().map(AddressRange::of_cidr).collect();
    let Some(first) = prefixes.first() else {
        return Err(refusal("prefixes is required", PREFIXES));
    };
    let family = Family::of(first.addr());
    let length = length(spec, family)?;
    for (index, prefix) in prefixes.iter().enumerate() {
        check(*prefix, family, length).map_err(|detail| refusal(detail, entries::at(PREFIXES, index)))?;
    }
    let excluded = excluded(spec, family)?;
    // The gateway is informational only: no block is reserved for it.
    entries::gateway(spec.gateway.as_deref(), family, &format!("provided gateway must be {family}"))?;

    let span = entries::span(AddressRange::of_cidr(*first), &ranges);
    let sets = Sets::new(RangeSet::new(family, &ranges), &RangeSet::new(family, &excluded));
    Ok(Plan {
        span,
        subnet: subnet::covering(&span, PREFIXES)?,
        ranges: sets.ranges.ranges().collect(),
        exclude: sets.exclude(EXCLUDED)?,
        cooling_ms: None,
        total: saturated(blocks::count(&sets.allocatable(), length)),
    })
}

/// Prefix length of an allocated block.
fn length(spec: &PrefixPoolSpec, family: Family) -> Result<u8, Problem> {
    let default = match family {
        Family::V4 => None,
        Family::V6 => Some(ALLOCATION_PREFIX_LENGTH_DEFAULT),
    };
    let Some(length) = spec.allocation_prefix_length.or(default) else {
        return Err(refusal("allocationPrefixLength is required for IPv4 prefixes", LENGTH));
    };
    let bits = family.bits();
    if !(1..=bits).contains(&length) {
        let detail = format!("allocationPrefixLength must be between 1 and {bits}, for {family} prefixes");
        return Err(refusal(detail, LENGTH));
    }
    Ok(length)
}

/// Refuses a prefix without blocks of the pool, with the reason.
fn check(prefix: IpNet, family: Family, length: u8) -> Result<(), String> {
    if Family::of(prefix.addr()) != family {
        return Err(format!(
            "provided prefixes are of mixed IP families; beside the first one only {family} prefixes are \
             supported"
        ));
    }
    if prefix.addr() != prefix.network() {
        return Err(format!("CIDR must be network-aligned: {prefix}; did you mean {}?", prefix.trunc()));
    }
    if prefix.prefix_len() > length {
        return Err(format!("CIDR prefix length must be <= allocationPrefixLength ({length}): {prefix}"));
    }
    Ok(())
}

/// Entries of `excludedPrefixes`. They may lie outside of the prefixes.
fn excluded(spec: &PrefixPoolSpec, family: Family) -> Result<Vec<AddressRange>, Problem> {
    let entries = entries::read(&spec.excluded_prefixes, EXCLUDED, NOT_EXCLUSION, entries::range)?;
    match entries::odd_family(&entries, family) {
        Some(index) => {
            let detail = format!("only {family} excluded prefixes are supported with {family} prefixes");
            Err(refusal(detail, entries::at(EXCLUDED, index)))
        }
        None => Ok(entries),
    }
}
