//! Resources of ipamd that the spec of a pool requires.
//!
//! **Invariant:** the work for a spec is bounded by its number of entries, which has a limit. No address and
//! no block is enumerated.

mod addresses;
mod blocks;
mod entries;
mod prefixes;
mod subnet;

#[cfg(test)]
mod addresses_tests;
#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod prefixes_tests;

use ipam_api::address::AddressRange;
use ipam_api::cluster_api::PoolReference;
use ipam_api::limits::RANGES_MAX;
use ipam_api::name::Name;
use ipam_api::resource::Pool;
use ipam_api::{Code, Family, Problem, RangeSet};
use ipnet::IpNet;

pub(crate) use self::addresses::{of_addresses, reference_of_addresses};
pub(crate) use self::prefixes::{of_prefixes, reference_of_prefixes};

/// Largest number in a status: the fields are signed 64-bit integers.
const TOTAL_MAX: u64 = i64::MAX.unsigned_abs();

/// Subnet and pool that a spec requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Smallest range with all addresses of the pool: any subnet that contains this range is suitable.
    pub(crate) span: AddressRange,
    /// Subnet that is created if none contains the addresses.
    pub(crate) subnet: IpNet,
    /// Ranges of the pool, merged and sorted.
    pub(crate) ranges: Vec<AddressRange>,
    /// Addresses of the ranges that are not allocated: exclusions, gateway and reserved addresses. Merged,
    /// sorted, and inside of the ranges.
    pub(crate) exclude: Vec<AddressRange>,
    /// Cooling time of a released address in milliseconds; none for the default.
    pub(crate) cooling_ms: Option<u64>,
    /// Number of addresses or blocks that can be allocated, saturated at `i64::MAX`.
    pub(crate) total: u64,
}

impl Plan {
    /// Addresses that can be allocated.
    pub(crate) fn allocatable(&self) -> RangeSet {
        let family = self.span.family();
        RangeSet::new(family, &self.ranges).minus(&RangeSet::new(family, &self.exclude))
    }
}

/// Number of blocks of this prefix length in a pool, saturated at `i64::MAX`.
pub(crate) fn number_of_blocks(family: Family, pool: &Pool, length: u8) -> u64 {
    let set = RangeSet::new(family, &pool.ranges).minus(&RangeSet::new(family, &pool.exclude));
    saturated(blocks::count(&set, length))
}

/// Addresses of a pool, and its addresses that are not allocated.
#[derive(Debug)]
struct Sets {
    ranges: RangeSet,
    exclude: RangeSet,
}

impl Sets {
    /// Sets of these ranges and exclusions of one family.
    fn new(ranges: RangeSet, never: &RangeSet) -> Self {
        let exclude = ranges.intersection(never);
        Self { ranges, exclude }
    }

    /// Addresses that can be allocated.
    fn allocatable(&self) -> RangeSet {
        self.ranges.minus(&self.exclude)
    }

    /// Ranges of the exclusions, unless they exceed the limit of a pool. They come from the list `field`.
    fn exclude(&self, field: &str) -> Result<Vec<AddressRange>, Problem> {
        let exclude: Vec<AddressRange> = self.exclude.ranges().collect();
        if exclude.len() <= RANGES_MAX {
            return Ok(exclude);
        }
        let count = exclude.len();
        let detail =
            format!("the pool would have {count} ranges without allocations, and at most {RANGES_MAX} fit");
        Err(refusal(detail, field))
    }
}

/// Number of a status: saturated at `i64::MAX`.
fn saturated(count: u128) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX).min(TOTAL_MAX)
}

/// Pool of ipamd that a spec names. Such a spec must not contain any of `lists`.
fn reference<'a>(
    pool_ref: Option<&'a PoolReference>,
    lists: [(&str, &[String]); 2],
) -> Result<Option<&'a Name>, Problem> {
    let Some(PoolReference { name }) = pool_ref else { return Ok(None) };
    match lists.iter().find(|(_, list)| !list.is_empty()) {
        Some((field, _)) => {
            let detail = format!("poolRef and {field} exclude each other: pool {name} has its own addresses");
            Err(refusal(detail, "/poolRef"))
        }
        None => Ok(Some(name)),
    }
}

/// Refusal of a field, named by a JSON pointer.
fn refusal(detail: impl Into<String>, pointer: impl Into<String>) -> Problem {
    Problem::new(Code::InvalidField, detail).at(pointer)
}
