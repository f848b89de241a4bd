//! Pools of a run: their addresses at each time.
//!
//! Events report changes of pools, but not the specs of new pools. The specs at creation follow from the
//! final states and the changes before them, in reverse. A deleted pool whose ranges never changed stays
//! unknown.

use std::collections::BTreeMap;

use ipam_api::address::AddressRange;
use ipam_api::event::Event;
use ipam_api::resource::{Pool, PoolStatus, Resource};

/// Ranges of a spec; none if they are unknown.
pub(super) type Ranges = Option<Vec<AddressRange>>;

/// Addresses of a pool, as far as they are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PoolSpec {
    /// Ranges of the pool.
    pub ranges: Ranges,
    /// Excluded addresses of the pool.
    pub exclude: Ranges,
    /// True if a change in the journal closed the pool.
    pub is_closed: bool,
}

impl PoolSpec {
    /// Returns false for a block that is certainly outside of the pool.
    pub(super) fn may_allocate(&self, block: &AddressRange) -> bool {
        let is_in = |ranges: &[AddressRange]| ranges.iter().any(|range| range.contains(block));
        let touches = |range: &AddressRange| {
            range.family() == block.family() && range.first() <= block.last() && block.first() <= range.last()
        };
        let is_excluded = self.exclude.as_ref().is_some_and(|exclude| exclude.iter().any(touches));
        self.ranges.as_deref().is_none_or(|ranges| covers(ranges, block) || is_in(ranges)) && !is_excluded
    }

    /// Applies the new value of a field.
    pub(super) fn change(&mut self, field: &str, value: &str) {
        match field {
            "ranges" => self.ranges = parse(value),
            "exclude" => self.exclude = parse(value),
            _ => {}
        }
    }
}

/// Returns true if adjacent ranges cover a block together.
fn covers(ranges: &[AddressRange], block: &AddressRange) -> bool {
    let mut next = block.first();
    let mut sorted: Vec<&AddressRange> =
        ranges.iter().filter(|range| range.family() == block.family()).collect();
    sorted.sort_unstable();
    for range in sorted {
        if range.first() <= next && next <= range.last() {
            if range.last() >= block.last() {
                return true;
            }
            next = range.last().saturating_add(1);
        }
    }
    false
}

/// Value of a field in an event; none if it is truncated, or empty, which means the whole subnet.
fn parse(value: &str) -> Ranges {
    if value.contains('…') || value.is_empty() {
        return None;
    }
    value.split(", ").map(|range| range.parse().ok()).collect()
}

/// Specs of pools at their creation, by the index of the event.
#[derive(Debug, Clone, Default)]
pub struct PoolSpecs {
    created: BTreeMap<(u64, u32), PoolSpec>,
    /// Specs of pools that were created before the journal begins.
    pub(super) before: BTreeMap<String, PoolSpec>,
}

impl PoolSpecs {
    /// Specs from a journal and the pools at its end.
    #[must_use]
    pub fn of(journal: &[Event], last: &[Resource<Pool, PoolStatus>]) -> Self {
        let mut present: BTreeMap<String, PoolSpec> = last.iter().map(final_spec).collect();
        let mut specs = Self::default();
        for event in journal.iter().rev() {
            match event.event_type.as_str() {
                "pool.created" => {
                    let spec = present.remove(&event.object).unwrap_or_default();
                    specs.created.insert((event.revision, event.number), spec);
                }
                "pool.deleted" => {
                    present.insert(event.object.clone(), PoolSpec::default());
                }
                "pool.changed" => {
                    let spec = present.entry(event.object.clone()).or_default();
                    event.changes.iter().for_each(|change| spec.change(&change.field, &change.from));
                }
                // The restored state may be any earlier one.
                "epoch.begun" => present.values_mut().for_each(|spec| *spec = PoolSpec::default()),
                _ => {}
            }
        }
        specs.before = present;
        specs
    }

    /// Spec of a pool that an event creates.
    pub(super) fn at_creation(&self, event: &Event) -> PoolSpec {
        self.created.get(&(event.revision, event.number)).cloned().unwrap_or_default()
    }
}

fn final_spec(pool: &Resource<Pool, PoolStatus>) -> (String, PoolSpec) {
    let spec = &pool.spec;
    let ranges = if spec.ranges.is_empty() {
        vec![AddressRange::of_cidr(pool.status.cidr)]
    } else {
        spec.ranges.clone()
    };
    let exclude = spec.exclude.iter().copied().chain(spec.gateway.map(AddressRange::single)).collect();
    (spec.name.to_string(), PoolSpec { ranges: Some(ranges), exclude: Some(exclude), is_closed: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(ranges: &str, exclude: &str) -> PoolSpec {
        PoolSpec { ranges: parse(ranges), exclude: parse(exclude), is_closed: false }
    }

    #[test]
    fn a_pool_allocates_in_its_ranges_and_outside_of_exclusions() {
        let spec = spec("10.0.0.0-10.0.0.15, 10.0.0.16-10.0.0.31", "10.0.0.9");
        let may = |text: &str| spec.may_allocate(&text.parse().unwrap());
        assert!(may("10.0.0.15") && may("10.0.0.16/28") && may("10.0.0.12-10.0.0.19"));
        assert!(!may("10.0.0.9") && !may("10.0.0.32") && !may("10.0.0.0/28") && !may("fd00::1"));
    }

    #[test]
    fn unknown_ranges_forbid_nothing() {
        assert!(spec("", "").may_allocate(&"10.9.9.9".parse().unwrap()));
        assert!(spec("10.0.0.1, 10.…", "").may_allocate(&"10.9.9.9".parse().unwrap()));
    }
}
