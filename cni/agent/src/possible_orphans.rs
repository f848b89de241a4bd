//! Attachments that seem to have lost their container, with the time of the first such observation.
//!
//! A runtime may replace the file of a namespace that lives, so one observation proves nothing. Absence from
//! the list of a runtime's GC is proof.

use std::collections::BTreeMap;
use std::time::Duration;

use ipam_api::node_report::OrphanEvidence;
use tokio::time::Instant;

use crate::journal::{Attachments, Entry, Key};

/// Attachments that seem to have lost their container.
#[derive(Debug, Default)]
pub struct PossibleOrphans(BTreeMap<Key, PossibleOrphan>);

/// Attachment that seems to have lost its container.
#[derive(Debug, Clone)]
struct PossibleOrphan {
    /// Entry as it was observed. A newer ADD or answer makes it differ, which ends the suspicion.
    entry: Entry,
    evidence: OrphanEvidence,
    since: Instant,
}

impl PossibleOrphans {
    /// Notes the attachments whose container is missing now; returns the orphans among all noted ones.
    ///
    /// An orphan's container has been missing for the grace period, or the orphan was noted by
    /// [`condemn`](Self::condemn) and is unchanged in `present`.
    pub fn observe(
        &mut self,
        mut gone: BTreeMap<Key, (Entry, OrphanEvidence)>,
        grace: Duration,
        present: &Attachments,
    ) -> Vec<(Entry, OrphanEvidence)> {
        self.0.retain(|key, possible| {
            let observed = gone.remove(key).is_some_and(|(entry, _)| entry == possible.entry);
            let by_runtime = possible.evidence == OrphanEvidence::NotInGcList;
            observed || (by_runtime && present.get(key) == Some(&possible.entry))
        });
        let is_orphan = |possible: &&PossibleOrphan| {
            possible.evidence == OrphanEvidence::NotInGcList || possible.since.elapsed() >= grace
        };
        let orphans = self.0.values().filter(is_orphan);
        let orphans = orphans.map(|possible| (possible.entry.clone(), possible.evidence)).collect();
        for (key, (entry, evidence)) in gone {
            self.0.insert(key, PossibleOrphan { entry, evidence, since: Instant::now() });
        }
        orphans
    }

    /// Notes attachments that are missing from the list of a runtime's GC: orphans without a grace period.
    pub fn condemn(&mut self, orphans: &[(Entry, OrphanEvidence)]) {
        for (entry, evidence) in orphans {
            let possible =
                PossibleOrphan { entry: entry.clone(), evidence: *evidence, since: Instant::now() };
            self.0.insert(entry.key.clone(), possible);
        }
    }
}

#[cfg(test)]
mod tests {
    use ipam_api::name::{InterfaceName, ObjectName};

    use super::*;
    use crate::journal::{Phase, Record};

    const NETNS: OrphanEvidence = OrphanEvidence::NetnsGone;
    const GC: OrphanEvidence = OrphanEvidence::NotInGcList;
    const HOUR: Duration = Duration::from_secs(3600);

    fn entry(container: &str, allocations: &[u64]) -> Entry {
        let name = |text| ObjectName::new(text).unwrap();
        let interface = InterfaceName::new("eth0").unwrap();
        Entry {
            key: Key { config: name("lan"), container_id: name(container), interface },
            phase: Phase::Attached,
            boot_id: "b1".to_owned(),
            runtime: "containerd".to_owned(),
            netns: None,
            endpoint: None,
            uid: None,
            allocations: allocations.to_vec(),
        }
    }

    fn gone(entries: &[Entry]) -> BTreeMap<Key, (Entry, OrphanEvidence)> {
        entries.iter().map(|entry| (entry.key.clone(), (entry.clone(), NETNS))).collect()
    }

    #[test]
    fn a_container_is_gone_at_the_second_observation_after_the_grace() {
        let mut possible = PossibleOrphans::default();
        let (none, one) = (Attachments::default(), entry("c1", &[7]));
        let mut observe = |entries: &[Entry], grace| possible.observe(gone(entries), grace, &none);
        assert_eq!(observe(std::slice::from_ref(&one), Duration::ZERO), []);
        assert_eq!(observe(std::slice::from_ref(&one), HOUR), []);
        assert_eq!(observe(std::slice::from_ref(&one), Duration::ZERO), [(one.clone(), NETNS)]);
        // The grace period starts again once the container was seen, or after a new ADD.
        assert_eq!(observe(&[], Duration::ZERO), []);
        assert_eq!(observe(std::slice::from_ref(&one), Duration::ZERO), []);
        assert_eq!(observe(&[entry("c1", &[8])], Duration::ZERO), []);
    }

    #[test]
    fn an_attachment_that_a_runtime_disowns_is_an_orphan_until_it_changes() {
        let (mut possible, mut present) = (PossibleOrphans::default(), Attachments::default());
        let one = entry("c1", &[7]);
        present.apply(Record::Put(one.clone()));
        possible.condemn(&[(one.clone(), GC)]);
        for _ in 0..2 {
            assert_eq!(possible.observe(BTreeMap::new(), HOUR, &present), [(one.clone(), GC)]);
        }
        present.apply(Record::Put(entry("c1", &[8])));
        assert_eq!(possible.observe(BTreeMap::new(), HOUR, &present), []);
    }
}
