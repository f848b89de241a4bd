//! Facts about pods that wait for an answer of the servers, by uid.

use std::collections::{BTreeMap, BTreeSet};

use ipam_api::limits::{KUBERNETES_FACTS_MAX, PROBER_SILENCE_MS_MAX, WORKLOADS_MAX};
use ipam_api::name::ObjectName;
use ipam_api::time::Timestamp;
use ipam_api::workload::{
    Workload, WorkloadGone, WorkloadNode, WorkloadNodeState, WorkloadReason as Reason, WorkloadResult,
    WorkloadVerdict,
};

use crate::objects::PodFacts;

/// Time in milliseconds until a fact is sent again if its verdict depends on a node.
const NODE_MS: u64 = PROBER_SILENCE_MS_MAX;
/// Minimum time in milliseconds until a fact is sent again.
const AGAIN_MS: u64 = 1_000;

/// Facts about pods.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    entries: BTreeMap<String, Entry>,
    /// Uids in the order in which their facts are due.
    order: BTreeSet<(Timestamp, String)>,
    /// Number of facts that found no room.
    pub(crate) dropped: u64,
}

#[derive(Debug)]
struct Entry {
    facts: PodFacts,
    gone: WorkloadGone,
    due_at: Timestamp,
}

impl Entry {
    /// True if the facts are still those of a report.
    fn is_said_by(&self, sent: &Workload) -> bool {
        self.gone == sent.gone
            && self.facts.phase == sent.phase
            && self.facts.finished_at == sent.finished_at
            && self.facts.deletion_due_at == sent.deletion_due_at
    }
}

impl Queue {
    /// Adds facts, which are due at once. Facts about a deleted uid are final.
    pub(crate) fn put(&mut self, facts: PodFacts, gone: WorkloadGone, now: Timestamp) {
        let known = self.entries.get(&facts.uid);
        if gone == WorkloadGone::None && known.is_some_and(|entry| entry.gone != gone || entry.facts == facts)
        {
            return;
        }
        if known.is_none() && self.entries.len() >= KUBERNETES_FACTS_MAX {
            self.dropped += 1;
            return;
        }
        self.insert(Entry { facts, gone, due_at: now });
    }

    fn insert(&mut self, entry: Entry) {
        let uid = entry.facts.uid.clone();
        self.remove(&uid);
        self.order.insert((entry.due_at, uid.clone()));
        self.entries.insert(uid, entry);
    }

    fn remove(&mut self, uid: &str) -> Option<Entry> {
        let entry = self.entries.remove(uid)?;
        self.order.remove(&(entry.due_at, uid.to_owned()));
        Some(entry)
    }

    /// Forgets facts about pods that a list lacks. They may have changed since.
    pub(crate) fn retain_present(&mut self, is_present: impl Fn(&str) -> bool) {
        let is_over = |(uid, entry): &(&String, &Entry)| entry.gone == WorkloadGone::None && !is_present(uid);
        let over: Vec<String> = self.entries.iter().filter(is_over).map(|(uid, _)| uid.clone()).collect();
        for uid in over {
            self.remove(&uid);
        }
    }

    /// Makes all facts due that depend on the state of a node.
    pub(crate) fn node_changed(&mut self, node: &ObjectName, now: Timestamp) {
        let is_there =
            |entry: &Entry| entry.facts.node.as_ref() == Some(node) && entry.gone == WorkloadGone::None;
        let uids: Vec<String> =
            self.entries.iter().filter(|(_, entry)| is_there(entry)).map(|(uid, _)| uid.clone()).collect();
        for uid in uids {
            if let Some(entry) = self.remove(&uid) {
                self.insert(Entry { due_at: now, ..entry });
            }
        }
    }

    /// True if the deletion of the uid is known.
    pub(crate) fn is_gone(&self, uid: &str) -> bool {
        self.entries.get(uid).is_some_and(|entry| entry.gone != WorkloadGone::None)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Time at which the next facts are due.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.order.first().map(|(due_at, _)| *due_at)
    }

    /// Facts that are due, as many as fit into one request. Facts about uids that may still exist are omitted
    /// without `alive_at`, the time at which the watches were alive.
    pub(crate) fn batch(
        &self,
        now: Timestamp,
        alive_at: Option<Timestamp>,
        node_state: impl Fn(&ObjectName) -> Option<WorkloadNodeState>,
    ) -> Vec<Workload> {
        let due = self.order.iter().take_while(|(due_at, _)| *due_at <= now);
        let due = due.filter_map(|(_, uid)| self.entries.get(uid));
        let workload = |entry: &Entry| {
            let observed_at = if entry.gone == WorkloadGone::None { alive_at? } else { now };
            let PodFacts { endpoint, uid, phase, has_addresses, deletion_due_at, finished_at, node, .. } =
                entry.facts.clone();
            let node = node.and_then(|name| Some(WorkloadNode { state: node_state(&name)?, name }));
            Some(Workload {
                endpoint,
                uid,
                phase,
                host_network: false,
                has_addresses,
                deletion_due_at,
                finished_at,
                node,
                gone: entry.gone,
                observed_at,
            })
        };
        due.filter_map(workload).take(WORKLOADS_MAX).collect()
    }

    /// Applies the verdict on a fact that was sent. Facts that have changed since stay as they are.
    pub(crate) fn answered(
        &mut self,
        sent: &Workload,
        result: &WorkloadResult,
        now: Timestamp,
        scan_ms: u64,
    ) {
        if !self.entries.get(&sent.uid).is_some_and(|entry| entry.is_said_by(sent)) {
            return;
        }
        let Some(entry) = self.remove(&sent.uid) else { return };
        if let Some(due_at) = again(result, entry.gone, now, scan_ms) {
            self.insert(Entry { due_at, ..entry });
        }
    }
}

/// Time at which a fact is sent again; none once it is settled.
fn again(result: &WorkloadResult, gone: WorkloadGone, now: Timestamp, scan_ms: u64) -> Option<Timestamp> {
    let after = |ms: u64| Timestamp(now.0.saturating_add(ms.max(AGAIN_MS)));
    match (result.verdict, result.reason) {
        (WorkloadVerdict::Reclaim | WorkloadVerdict::Unknown, _) => None,
        (WorkloadVerdict::Later, _) => Some(result.due_at.unwrap_or_default().max(after(0))),
        (WorkloadVerdict::Keep, Reason::StickyWanted) if gone != WorkloadGone::None => None,
        (
            WorkloadVerdict::Keep,
            Reason::NodeHeard
            | Reason::NodeNotReady
            | Reason::NodeUnknown
            | Reason::ObservationStale
            | Reason::Migrating,
        ) => Some(after(NODE_MS)),
        (WorkloadVerdict::Keep, _) => Some(after(scan_ms)),
    }
}

#[cfg(test)]
mod tests {
    use ipam_api::resource::EndpointKind;
    use ipam_api::workload::{WorkloadName, WorkloadPhase};

    use super::*;

    fn facts(uid: &str, node: &str) -> PodFacts {
        let name = |text: &str| ObjectName::new(text).unwrap();
        PodFacts {
            endpoint: WorkloadName { kind: EndpointKind::Pod, namespace: name("shop"), name: name("web-0") },
            uid: uid.to_owned(),
            phase: WorkloadPhase::Running,
            has_addresses: true,
            deletion_due_at: Some(Timestamp(5_000)),
            finished_at: None,
            node: Some(name(node)),
            is_static: false,
        }
    }

    fn result(verdict: WorkloadVerdict, reason: Reason, due_at: Option<u64>) -> WorkloadResult {
        let due_at = due_at.map(Timestamp);
        WorkloadResult { uid: "u1".to_owned(), verdict, reason, due_at, addresses: Vec::new(), kept: 0 }
    }

    fn batch(queue: &Queue, now: u64, alive_at: Option<u64>) -> Vec<(String, WorkloadGone, u64)> {
        let state = |_: &ObjectName| Some(WorkloadNodeState::Ready);
        let sent = queue.batch(Timestamp(now), alive_at.map(Timestamp), state);
        sent.into_iter().map(|one| (one.uid, one.gone, one.observed_at.0)).collect()
    }

    #[test]
    fn facts_are_sent_when_they_are_due_and_until_they_are_settled() {
        use WorkloadGone::{Absent, Deleted, None as Present};
        use WorkloadVerdict::{Keep, Later, Reclaim, Unknown};
        for (gone, verdict, reason, due_at, next) in [
            (Deleted, Reclaim, Reason::Deleted, None, None),
            (Deleted, Unknown, Reason::UidUnknown, None, None),
            (Deleted, Keep, Reason::StickyWanted, None, None),
            (Absent, Keep, Reason::StickyWanted, None, None),
            (Deleted, Keep, Reason::NodeHeard, None, Some(10_000 + NODE_MS)),
            (Deleted, Keep, Reason::Migrating, None, Some(10_000 + NODE_MS)),
            (Present, Keep, Reason::StickyWanted, None, Some(70_000)),
            (Present, Keep, Reason::NodeNotReady, None, Some(10_000 + NODE_MS)),
            (Present, Keep, Reason::NodeUnknown, None, Some(10_000 + NODE_MS)),
            (Present, Keep, Reason::ObservationStale, None, Some(10_000 + NODE_MS)),
            (Present, Keep, Reason::NodeElsewhere, None, Some(70_000)),
            (Present, Keep, Reason::SwitchedOff, None, Some(70_000)),
            (Present, Later, Reason::Terminating, None, Some(11_000)),
            (Present, Later, Reason::Terminating, Some(50_000), Some(50_000)),
            (Present, Later, Reason::Terminating, Some(9_000), Some(11_000)),
            (Present, Reclaim, Reason::Finished, None, None),
        ] {
            let mut queue = Queue::default();
            queue.put(facts("u1", "n1"), gone, Timestamp(10_000));
            let state = |_: &ObjectName| Some(WorkloadNodeState::Ready);
            let sent = queue.batch(Timestamp(10_000), Some(Timestamp(9_900)), state);
            queue.answered(&sent[0], &result(verdict, reason, due_at), Timestamp(10_000), 60_000);
            assert_eq!(queue.next_due(), next.map(Timestamp), "{gone:?} {reason:?}");
            assert_eq!(queue.len(), usize::from(next.is_some()));
        }
    }

    #[test]
    fn a_fact_is_the_newest_state_of_its_pod() {
        let mut queue = Queue::default();
        let mut changing = facts("u1", "n1");
        let state = |_: &ObjectName| Some(WorkloadNodeState::NotReady);
        let changes: [fn(&mut PodFacts); 3] = [
            |facts| facts.deletion_due_at = Some(Timestamp(8_000)),
            |facts| facts.phase = WorkloadPhase::Failed,
            |facts| facts.finished_at = Some(Timestamp(7_000)),
        ];
        for (change, now) in changes.iter().zip(2..) {
            queue.put(changing.clone(), WorkloadGone::None, Timestamp(1));
            let sent = queue.batch(Timestamp(now), Some(Timestamp(now)), state);
            change(&mut changing);
            queue.put(changing.clone(), WorkloadGone::None, Timestamp(now));
            let settled = result(WorkloadVerdict::Reclaim, Reason::Finished, None);
            queue.answered(&sent[0], &settled, Timestamp(now), 1);
            assert_eq!((queue.len(), queue.next_due()), (1, Some(Timestamp(now))));
        }
        assert_eq!(
            queue.batch(Timestamp(9), Some(Timestamp(8)), state),
            [Workload {
                endpoint: changing.endpoint.clone(),
                uid: "u1".to_owned(),
                phase: WorkloadPhase::Failed,
                host_network: false,
                has_addresses: true,
                deletion_due_at: Some(Timestamp(8_000)),
                finished_at: Some(Timestamp(7_000)),
                node: Some(WorkloadNode {
                    name: ObjectName::new("n1").unwrap(),
                    state: WorkloadNodeState::NotReady
                }),
                gone: WorkloadGone::None,
                observed_at: Timestamp(8),
            }]
        );
    }

    #[test]
    fn facts_that_are_known_are_sent_once() {
        let mut queue = Queue::default();
        queue.put(facts("u1", "n1"), WorkloadGone::None, Timestamp(1));
        queue.put(facts("u2", "n1"), WorkloadGone::None, Timestamp(40));
        assert_eq!(queue.next_due(), Some(Timestamp(1)), "the earliest");
        let sent = queue.batch(Timestamp(1), Some(Timestamp(1)), |_| None);
        queue.answered(
            &sent[0],
            &result(WorkloadVerdict::Keep, Reason::SwitchedOff, None),
            Timestamp(1),
            u64::MAX,
        );
        queue.put(facts("u1", "n1"), WorkloadGone::None, Timestamp(2));
        assert_eq!(batch(&queue, 50, Some(50)), [("u2".to_owned(), WorkloadGone::None, 50)]);
    }

    #[test]
    fn only_a_uid_that_is_gone_is_reported_while_the_watches_are_silent() {
        let mut queue = Queue::default();
        queue.put(facts("u1", "n1"), WorkloadGone::None, Timestamp(1));
        queue.put(facts("u2", "n1"), WorkloadGone::Deleted, Timestamp(2));
        assert_eq!(batch(&queue, 9, None), [("u2".to_owned(), WorkloadGone::Deleted, 9)]);
        let alive = batch(&queue, 9, Some(7));
        assert_eq!(alive[0], ("u1".to_owned(), WorkloadGone::None, 7), "as old as the newest sign of life");
        assert_eq!(alive.len(), 2);
        assert!(batch(&queue, 0, Some(0)).is_empty());
    }

    #[test]
    fn newer_facts_survive_the_answer_to_older_ones() {
        let mut queue = Queue::default();
        queue.put(facts("u1", "n1"), WorkloadGone::None, Timestamp(1));
        let state = |_: &ObjectName| None;
        let sent = queue.batch(Timestamp(1), Some(Timestamp(1)), state);
        assert!(sent[0].node.is_none(), "nothing is known of the node");
        assert!(!queue.is_gone("u1"));
        queue.put(facts("u1", "n1"), WorkloadGone::Deleted, Timestamp(2));
        queue.answered(
            &sent[0],
            &result(WorkloadVerdict::Unknown, Reason::UidUnknown, None),
            Timestamp(2),
            1,
        );
        assert!(queue.is_gone("u1"));
        queue.put(facts("u1", "n2"), WorkloadGone::None, Timestamp(3));
        assert!(queue.is_gone("u1"), "a uid that is gone stays gone");
        queue.retain_present(|_| false);
        assert_eq!(queue.len(), 1);
    }

    #[test]
    fn the_state_of_a_node_and_a_list_change_only_facts_about_the_living() {
        let mut queue = Queue::default();
        queue.put(facts("u1", "n1"), WorkloadGone::None, Timestamp(1));
        queue.put(facts("u2", "n2"), WorkloadGone::None, Timestamp(1));
        queue.put(facts("u3", "n1"), WorkloadGone::Deleted, Timestamp(1));
        let state = |_: &ObjectName| None;
        for sent in queue.batch(Timestamp(1), Some(Timestamp(1)), state) {
            let later = result(WorkloadVerdict::Later, Reason::Terminating, Some(50_000));
            queue.answered(&sent, &later, Timestamp(1), 1);
        }
        queue.node_changed(&ObjectName::new("n1").unwrap(), Timestamp(7));
        assert_eq!(batch(&queue, 7, Some(7)), [("u1".to_owned(), WorkloadGone::None, 7)]);
        queue.retain_present(|uid| uid == "u2");
        assert_eq!(queue.entries.keys().collect::<Vec<_>>(), ["u2", "u3"]);
    }

    #[test]
    fn a_request_has_a_bounded_number_of_facts() {
        let mut queue = Queue::default();
        for number in 0..300 {
            queue.put(facts(&format!("u{number}"), "n1"), WorkloadGone::Deleted, Timestamp(2));
            queue.put(facts(&format!("v{number}"), "n1"), WorkloadGone::None, Timestamp(1));
        }
        assert_eq!(batch(&queue, 2, None).len(), WORKLOADS_MAX, "those that are left out take no room");
    }

    #[test]
    fn facts_that_find_no_room_are_counted() {
        let mut queue = Queue::default();
        for number in 0..=KUBERNETES_FACTS_MAX {
            queue.put(facts(&format!("u{number}"), "n1"), WorkloadGone::None, Timestamp(1));
        }
        assert_eq!((queue.len(), queue.dropped), (KUBERNETES_FACTS_MAX, 1));
        queue.put(facts("u0", "n1"), WorkloadGone::Deleted, Timestamp(1));
        assert!(queue.is_gone("u0"), "it has a place");
        assert_eq!(queue.dropped, 1);
    }
}
