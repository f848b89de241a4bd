//! Availability: gaps without an accepted write, by nemesis and target.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::latency::quantile;
use crate::checker::availability::{FaultGap, Target};

/// Gaps of the faults of one nemesis on one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AvailabilityRow {
    /// Nemesis.
    pub nemesis: String,
    /// Part of the cluster that the faults hit.
    pub target: Target,
    /// Number of faults.
    pub faults: u64,
    /// Longest time without an accepted write of each fault, sorted. Faults without writers have none.
    pub gaps_ms: Vec<u64>,
    /// Operations that began while one of the faults was active.
    pub operations: u64,
    /// Number of these operations that succeeded.
    pub ok: u64,
}

impl AvailabilityRow {
    /// Median gap.
    #[must_use]
    pub fn median_ms(&self) -> Option<u64> {
        (!self.gaps_ms.is_empty()).then(|| quantile(&self.gaps_ms, 50))
    }

    /// Longest gap.
    #[must_use]
    pub fn max_ms(&self) -> Option<u64> {
        self.gaps_ms.last().copied()
    }
}

/// Returns a row for each nemesis and target.
pub(super) fn rows(gaps: &[FaultGap<'_>]) -> Vec<AvailabilityRow> {
    let row = |gap: &FaultGap<'_>| AvailabilityRow {
        nemesis: gap.fault.nemesis.clone(),
        target: gap.target,
        faults: 1,
        gaps_ms: gap.gap_ns.map(|gap_ns| gap_ns / 1_000_000).into_iter().collect(),
        operations: gap.operations,
        ok: gap.ok,
    };
    merged(gaps.iter().filter(|gap| !gap.is_refused).map(row))
}

/// Merges rows of the same nemesis and target.
pub(super) fn merged(rows: impl Iterator<Item = AvailabilityRow>) -> Vec<AvailabilityRow> {
    let mut all: BTreeMap<(String, Target), AvailabilityRow> = BTreeMap::new();
    for mut row in rows {
        match all.get_mut(&(row.nemesis.clone(), row.target)) {
            Some(sum) => {
                sum.faults += row.faults;
                sum.gaps_ms.append(&mut row.gaps_ms);
                sum.operations += row.operations;
                sum.ok += row.ok;
            }
            None => {
                all.insert((row.nemesis.clone(), row.target), row);
            }
        }
    }
    let mut rows: Vec<AvailabilityRow> = all.into_values().collect();
    rows.iter_mut().for_each(|row| row.gaps_ms.sort_unstable());
    rows
}
