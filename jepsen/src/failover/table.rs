//! Table of the gaps of all rounds.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use super::rounds::{Fault, GAP_MAX};

/// Gaps by fault and system, in the order of the systems.
#[derive(Debug, Default)]
pub(super) struct Table {
    gaps: BTreeMap<Fault, Vec<(&'static str, Vec<Duration>)>>,
}

impl Table {
    pub(super) fn add(&mut self, system: &'static str, fault: Fault, gap: Duration) {
        let rows = self.gaps.entry(fault).or_default();
        match rows.iter_mut().find(|(name, _)| *name == system) {
            Some((_, gaps)) => gaps.push(gap),
            None => rows.push((system, vec![gap])),
        }
    }

    /// Returns true if each outage has ended.
    pub(super) fn is_whole(&self) -> bool {
        self.gaps.values().flatten().all(|(_, gaps)| gaps.iter().all(|gap| *gap < GAP_MAX))
    }

    /// Table in Markdown, in seconds. The ratio is that of the medians to the first system.
    pub(super) fn shown(&self) -> String {
        let mut text =
            "| fault | system | rounds | median | min | max | ratio |\n|---|---|---|---|---|---|---|\n"
                .to_owned();
        for (fault, rows) in &self.gaps {
            let first = rows.first().map_or(Duration::ZERO, |(_, gaps)| median(gaps));
            for (system, gaps) in rows {
                let (min, max) = (gaps.iter().min(), gaps.iter().max());
                let seconds = |gap: Option<&Duration>| gap.map_or(0.0, Duration::as_secs_f64);
                let median = median(gaps);
                // Writing to a string doesn't fail.
                let _ = writeln!(
                    text,
                    "| {} | {system} | {} | {:.2} | {:.2} | {:.2} | {:.1} |",
                    fault.name(),
                    gaps.len(),
                    median.as_secs_f64(),
                    seconds(min),
                    seconds(max),
                    median.as_secs_f64() / first.as_secs_f64().max(f64::MIN_POSITIVE),
                );
            }
        }
        text
    }
}

fn median(gaps: &[Duration]) -> Duration {
    let mut sorted = gaps.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_compares_the_medians_with_the_first_system() {
        let mut table = Table::default();
        for ms in [900, 300, 600] {
            table.add("ipamd", Fault::Kill, Duration::from_millis(ms));
            table.add("etcd", Fault::Kill, Duration::from_millis(3 * ms));
        }
        let shown = table.shown();
        assert!(shown.contains("| leader kill -9 | ipamd | 3 | 0.60 | 0.30 | 0.90 | 1.0 |"), "{shown}");
        assert!(shown.contains("| leader kill -9 | etcd | 3 | 1.80 | 0.90 | 2.70 | 3.0 |"), "{shown}");
        assert!(table.is_whole());
        table.add("etcd", Fault::Pause, GAP_MAX);
        assert!(!table.is_whole());
    }
}
