//! Each row of the table of pod states, with both of its verdicts.

use ipam_api::limits::WORKLOAD_OBSERVATION_MS_MAX;
use ipam_api::time::Timestamp;
use ipam_api::workload::{Workload, WorkloadReason as Reason};
use serde_json::{Value, json};

use super::{Facts, Known, NodeEvidence, Switches, Verdict, verdict};

const NOW: Timestamp = Timestamp(1_800_000_000_000);
const GONE_NODES: [&str; 2] = ["gone", "out-of-service"];

fn at(ms_ago: i64) -> Value {
    json!(Timestamp(NOW.0.checked_add_signed(-ms_ago).unwrap()))
}

/// Pod with these fields, observed now.
fn pod(fields: Value) -> Workload {
    let mut pod = json!({"endpoint": {"name": "web-0"}, "uid": "u1", "observed_at": NOW});
    pod.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    serde_json::from_value(pod).unwrap()
}

/// Pod with these fields on a node in a state.
fn on(node: &str, fields: Value) -> Workload {
    Workload { node: serde_json::from_value(json!({"name": "n1", "state": node})).unwrap(), ..pod(fields) }
}

const STATELESS: Known = Known { is_wanted: false, is_shared: false, node: NodeEvidence::None };
const SILENT: Known = Known { is_wanted: false, is_shared: false, node: NodeEvidence::Silent };
const HEARD: Known = Known { is_wanted: false, is_shared: false, node: NodeEvidence::Heard };
const ELSEWHERE: Known = Known { is_wanted: false, is_shared: false, node: NodeEvidence::Elsewhere };
const WANTED: Known = Known { is_wanted: true, is_shared: false, node: NodeEvidence::None };

fn judge(observed: &Workload, known: Known) -> Verdict {
    verdict(Facts { observed, known }, Switches::default(), NOW)
}

fn with(switches: Switches, observed: &Workload, known: Known) -> Verdict {
    verdict(Facts { observed, known }, switches, NOW)
}

fn stateless(observed: &Workload) -> Verdict {
    judge(observed, STATELESS)
}

fn later(reason: Reason, due_in_ms: u64) -> Verdict {
    Verdict::Later { reason, due_at: Timestamp(NOW.0 + due_in_ms) }
}

/// Running pod that terminates, and whose grace ended a while ago.
fn overdue() -> Value {
    json!({"phase": "running", "deletion_due_at": at(1_000)})
}

#[test]
fn a_pod_on_the_host_network_is_kept_whatever_is_said_of_it() {
    for mut fields in [json!({"gone": "deleted"}), json!({"gone": "absent"}), overdue()] {
        let judged = stateless(&on("ready", fields.clone()));
        assert!(matches!(judged, Verdict::Reclaim(_)), "a pod with a network of its own: {judged:?}");
        fields["host_network"] = json!(true);
        assert_eq!(stateless(&on("ready", fields)), Verdict::Keep(Reason::HostNetwork));
    }
}

#[test]
fn a_pending_pod_is_kept_and_reclaimed_past_its_grace_on_a_node_that_is_gone() {
    let pending = json!({"phase": "pending"});
    let terminating = |ms_ago| json!({"phase": "pending", "deletion_due_at": at(ms_ago)});
    for node in ["ready", "not-ready", "gone", "out-of-service"] {
        assert_eq!(stateless(&on(node, pending.clone())), Verdict::Keep(Reason::Pending), "{node}");
    }
    assert_eq!(stateless(&on("ready", terminating(1_000))), Verdict::Keep(Reason::Pending));
    assert_eq!(judge(&on("not-ready", terminating(1_000)), SILENT), Verdict::Keep(Reason::Pending));
    assert_eq!(stateless(&pod(terminating(1_000))), Verdict::Keep(Reason::Pending), "not yet on a node");
    for node in GONE_NODES {
        assert_eq!(stateless(&on(node, terminating(-5))), later(Reason::Terminating, 5));
        let reclaimed = Verdict::Reclaim(Reason::TerminatingOnGoneNode);
        assert_eq!(stateless(&on(node, terminating(0))), reclaimed, "{node}");
        assert_eq!(judge(&on(node, terminating(0)), HEARD), Verdict::Keep(Reason::Pending), "{node}");
    }
}

#[test]
fn a_running_pod_is_kept_and_reclaimed_without_addresses_by_a_switch_only() {
    let running = |has_addresses| json!({"phase": "running", "has_addresses": has_addresses});
    let on_switch = Switches { running_without_addresses: true, ..Switches::default() };
    assert_eq!(stateless(&on("ready", running(true))), Verdict::Keep(Reason::Running));
    assert_eq!(stateless(&on("ready", running(false))), Verdict::Keep(Reason::SwitchedOff));
    assert_eq!(with(on_switch, &on("ready", running(true)), STATELESS), Verdict::Keep(Reason::Running));
    let without = with(on_switch, &on("ready", running(false)), STATELESS);
    assert_eq!(without, Verdict::Reclaim(Reason::RunningWithoutAddresses));
    let unsaid = pod(json!({"phase": "running"}));
    assert_eq!(with(on_switch, &unsaid, STATELESS), Verdict::Keep(Reason::Running), "no fact");
}

#[test]
fn a_finished_pod_is_reclaimed_after_the_delay_by_the_switch_of_its_node() {
    for phase in ["succeeded", "failed"] {
        let finished = |ms_ago| json!({"phase": phase, "finished_at": at(ms_ago)});
        for node in ["ready", "not-ready", "gone", "out-of-service"] {
            let ended = on(node, finished(0));
            assert_eq!(stateless(&ended), Verdict::Reclaim(Reason::Finished), "{node}");
            let delayed = Switches { delay_ms: 500, ..Switches::default() };
            assert_eq!(with(delayed, &ended, STATELESS), later(Reason::Finished, 500), "no grace besides it");
            assert_eq!(
                with(delayed, &on(node, finished(500)), STATELESS),
                Verdict::Reclaim(Reason::Finished)
            );
            let off = match node {
                "ready" => Switches { terminating_on_ready_node: false, ..Switches::default() },
                _ => Switches { terminating_on_gone_node: false, ..Switches::default() },
            };
            assert_eq!(with(off, &ended, STATELESS), Verdict::Keep(Reason::SwitchedOff), "{node}");
        }
        let unknown = on("ready", json!({"phase": phase}));
        assert_eq!(stateless(&unknown), Verdict::Keep(Reason::EndUnknown), "a container may run");
        assert_eq!(stateless(&pod(finished(0))), Verdict::Keep(Reason::NodeUnknown));
        let deleted = on("ready", json!({"phase": phase, "deletion_due_at": at(1_000)}));
        assert_eq!(stateless(&deleted), Verdict::Reclaim(Reason::TerminatingOnReadyNode));
        let early = json!({"phase": phase, "finished_at": at(0), "deletion_due_at": at(-1_000)});
        assert_eq!(stateless(&on("ready", early)), Verdict::Reclaim(Reason::Finished), "its grace is over");
    }
}

/// The node has reported the end of the containers, so its state decides only which switch counts.
#[test]
fn a_finished_pod_is_reclaimed_unless_its_addresses_are_on_another_node() {
    let finished = json!({"phase": "failed", "finished_at": at(0)});
    let off = Switches { terminating_on_gone_node: false, ..Switches::default() };
    for (node, known) in [("not-ready", SILENT), ("gone", SILENT), ("gone", HEARD)] {
        let ended = on(node, finished.clone());
        assert_eq!(judge(&ended, known), Verdict::Reclaim(Reason::Finished), "{node} {known:?}");
        assert_eq!(with(off, &ended, known), Verdict::Keep(Reason::SwitchedOff), "{node} {known:?}");
    }
    assert_eq!(judge(&on("ready", finished), ELSEWHERE), Verdict::Keep(Reason::NodeElsewhere));
}

/// A container that has ended may be started again.
#[test]
fn a_pod_whose_containers_have_ended_is_kept_until_its_phase_says_so() {
    for (phase, reason) in
        [("pending", Reason::Pending), ("running", Reason::Running), ("unknown", Reason::NoEvidence)]
    {
        let ended = on("ready", json!({"phase": phase, "finished_at": at(1_000)}));
        assert_eq!(stateless(&ended), Verdict::Keep(reason), "{phase}");
    }
}

/// Spiderpool waits for the grace twice: `deletionTimestamp` contains it.
#[test]
fn a_terminating_pod_on_a_ready_node_is_reclaimed_once_its_grace_and_the_delay_are_over() {
    let terminating = |ms_ago| on("ready", json!({"phase": "running", "deletion_due_at": at(ms_ago)}));
    let reclaimed = Verdict::Reclaim(Reason::TerminatingOnReadyNode);
    assert_eq!(stateless(&terminating(-1)), later(Reason::Terminating, 1));
    for known in [STATELESS, HEARD, SILENT] {
        assert_eq!(judge(&terminating(0), known), reclaimed, "{known:?}");
    }
    let forever = Switches { delay_ms: u64::MAX, ..Switches::default() };
    assert_eq!(with(forever, &terminating(0), STATELESS), later(Reason::Terminating, u64::MAX - NOW.0));
    let delayed = Switches { delay_ms: 500, ..Switches::default() };
    assert_eq!(with(delayed, &terminating(499), STATELESS), later(Reason::Terminating, 1));
    assert_eq!(with(delayed, &terminating(500), STATELESS), reclaimed);
    let off = Switches { terminating_on_ready_node: false, ..Switches::default() };
    assert_eq!(with(off, &terminating(500), STATELESS), Verdict::Keep(Reason::SwitchedOff));
    let off = Switches { terminating_on_gone_node: false, ..Switches::default() };
    assert_eq!(with(off, &terminating(500), STATELESS), reclaimed, "another switch");
}

#[test]
fn a_terminating_pod_on_a_node_that_is_not_ready_is_kept_until_the_node_is_silent() {
    let overdue = on("not-ready", overdue());
    assert_eq!(stateless(&overdue), Verdict::Keep(Reason::NodeNotReady));
    assert_eq!(judge(&overdue, HEARD), Verdict::Keep(Reason::NodeNotReady));
    assert_eq!(judge(&overdue, SILENT), Verdict::Reclaim(Reason::TerminatingOnSilentNode));
    let off = Switches { terminating_on_gone_node: false, ..Switches::default() };
    assert_eq!(with(off, &overdue, SILENT), Verdict::Keep(Reason::SwitchedOff));
    let early = on("not-ready", json!({"phase": "running", "deletion_due_at": at(-7)}));
    assert_eq!(judge(&early, SILENT), later(Reason::Terminating, 7));
}

/// Spiderpool skips the pod for ever.
#[test]
fn a_terminating_pod_whose_node_is_gone_is_reclaimed_past_its_grace() {
    for node in GONE_NODES {
        let early = on(node, json!({"phase": "running", "deletion_due_at": at(-7)}));
        assert_eq!(stateless(&early), later(Reason::Terminating, 7), "{node}");
        let overdue = on(node, overdue());
        for known in [STATELESS, SILENT] {
            assert_eq!(judge(&overdue, known), Verdict::Reclaim(Reason::TerminatingOnGoneNode), "{node}");
        }
        assert_eq!(judge(&overdue, HEARD), Verdict::Keep(Reason::NodeHeard), "{node}");
        let off = Switches { terminating_on_gone_node: false, ..Switches::default() };
        assert_eq!(with(off, &overdue, STATELESS), Verdict::Keep(Reason::SwitchedOff), "{node}");
    }
}

#[test]
fn a_terminating_pod_is_kept_if_nothing_is_known_of_the_node_of_its_addresses() {
    assert_eq!(stateless(&pod(overdue())), Verdict::Keep(Reason::NodeUnknown));
    for node in ["ready", "not-ready", "gone", "out-of-service"] {
        let kept = Verdict::Keep(Reason::NodeElsewhere);
        assert_eq!(judge(&on(node, overdue()), ELSEWHERE), kept, "{node}");
    }
}

/// Spiderpool reclaims it, even if it is sticky (issues 2442, 2526, 3751).
#[test]
fn a_pod_within_its_grace_is_kept_though_it_shows_no_addresses() {
    for phase in ["running", "unknown"] {
        let empty = json!({"phase": phase, "has_addresses": false, "deletion_due_at": at(-7)});
        for node in ["ready", "not-ready", "gone", "out-of-service"] {
            assert_eq!(stateless(&on(node, empty.clone())), later(Reason::Terminating, 7), "{node}");
            assert_eq!(judge(&on(node, empty.clone()), WANTED), Verdict::Keep(Reason::StickyWanted));
        }
    }
    let overdue = json!({"phase": "running", "has_addresses": false, "deletion_due_at": at(0)});
    assert_eq!(stateless(&on("ready", overdue)), Verdict::Reclaim(Reason::TerminatingOnReadyNode));
}

#[test]
fn a_pod_that_is_not_found_is_reclaimed_by_a_watched_deletion_or_by_two_scans_and_a_read() {
    for (gone, reason) in [("deleted", Reason::Deleted), ("absent", Reason::Absent)] {
        for known in [STATELESS, SILENT, ELSEWHERE] {
            assert_eq!(judge(&pod(json!({"gone": gone})), known), Verdict::Reclaim(reason), "{known:?}");
        }
        let long_ago = json!({"gone": gone, "observed_at": at(3_600_000)});
        assert_eq!(stateless(&pod(long_ago)), Verdict::Reclaim(reason), "a uid never returns");
    }
    let running = on("ready", json!({"phase": "running", "gone": "deleted"}));
    assert_eq!(stateless(&running), Verdict::Reclaim(Reason::Deleted), "its last state");
    for fields in [json!({}), json!({"gone": "none", "has_addresses": false})] {
        assert_eq!(stateless(&pod(fields)), Verdict::Keep(Reason::NoEvidence));
    }
}

/// A forced deletion precedes the end of the containers, which the agent reports.
#[test]
fn a_pod_that_is_gone_keeps_its_addresses_while_the_agent_of_its_node_is_heard() {
    for gone in ["deleted", "absent"] {
        for known in [HEARD, Known { is_wanted: true, ..HEARD }, Known { is_shared: true, ..HEARD }] {
            assert_eq!(judge(&pod(json!({"gone": gone})), known), Verdict::Keep(Reason::NodeHeard));
        }
        assert!(matches!(stateless(&pod(json!({"gone": gone}))), Verdict::Reclaim(_)), "it is silent");
    }
}

/// A quorum read that finds another uid under the name proves that the earlier one is gone.
#[test]
fn a_pod_whose_name_has_another_uid_is_reclaimed() {
    assert_eq!(stateless(&pod(json!({"gone": "absent"}))), Verdict::Reclaim(Reason::Absent));
}

#[test]
fn a_sticky_pod_that_is_wanted_is_kept_in_every_state() {
    let finished = json!({"phase": "failed", "finished_at": at(1_000)});
    for node in ["ready", "gone", "out-of-service"] {
        for fields in [overdue(), finished.clone()] {
            let observed = on(node, fields.clone());
            assert_eq!(judge(&observed, WANTED), Verdict::Keep(Reason::StickyWanted), "{fields} {node}");
        }
        for gone in ["deleted", "absent"] {
            let observed = on(node, json!({"gone": gone}));
            let detached = Verdict::Detach(Reason::StickyWanted);
            assert_eq!(judge(&observed, WANTED), detached, "its attachment ends, its address stays");
        }
    }
    let silent = Known { is_wanted: true, ..SILENT };
    assert_eq!(judge(&on("not-ready", overdue()), silent), Verdict::Keep(Reason::StickyWanted));
    let on_switch = Switches { running_without_addresses: true, ..Switches::default() };
    let empty = pod(json!({"phase": "running", "has_addresses": false}));
    assert_eq!(with(on_switch, &empty, WANTED), Verdict::Keep(Reason::StickyWanted));
}

#[test]
fn a_sticky_pod_that_its_controller_does_not_want_is_judged_like_any_other() {
    let unwanted = Known { is_wanted: false, ..STATELESS };
    assert_eq!(judge(&pod(json!({"gone": "deleted"})), unwanted), Verdict::Reclaim(Reason::Deleted));
}

/// The machine outlives its pods: until `end` of its controller it is wanted.
#[test]
fn a_virtual_machine_keeps_its_addresses_until_its_controller_ends() {
    let endpoint = json!({"kind": "vm", "name": "mail"});
    let deleted = pod(json!({"endpoint": endpoint, "gone": "deleted"}));
    assert_eq!(judge(&deleted, WANTED), Verdict::Detach(Reason::StickyWanted));
    assert_eq!(judge(&deleted, STATELESS), Verdict::Reclaim(Reason::Deleted));
    for known in [WANTED, STATELESS] {
        let migrating = Known { is_shared: true, ..known };
        assert_eq!(judge(&deleted, migrating), Verdict::Keep(Reason::Migrating), "one of two pods is gone");
        let early = on("ready", json!({"endpoint": endpoint, "phase": "running", "deletion_due_at": at(-1)}));
        assert_eq!(judge(&early, migrating), Verdict::Keep(Reason::Migrating), "{known:?}");
    }
}

/// Spiderpool reclaims it without addresses, although only its node is silent.
#[test]
fn a_pod_of_unknown_phase_is_judged_as_on_a_node_that_is_not_ready() {
    let unknown = |node| on(node, json!({"has_addresses": false}));
    let overdue = |node| on(node, json!({"has_addresses": false, "deletion_due_at": at(1_000)}));
    for node in ["ready", "not-ready"] {
        assert_eq!(stateless(&unknown(node)), Verdict::Keep(Reason::NoEvidence), "{node}");
        assert_eq!(judge(&unknown(node), SILENT), Verdict::Keep(Reason::NoEvidence), "it has no deadline");
        assert_eq!(stateless(&overdue(node)), Verdict::Keep(Reason::NodeNotReady), "{node}");
        let reclaimed = Verdict::Reclaim(Reason::TerminatingOnSilentNode);
        assert_eq!(judge(&overdue(node), SILENT), reclaimed, "{node}");
    }
    for node in GONE_NODES {
        assert_eq!(stateless(&unknown(node)), Verdict::Keep(Reason::NoEvidence), "{node}");
        assert_eq!(stateless(&overdue(node)), Verdict::Reclaim(Reason::TerminatingOnGoneNode), "{node}");
    }
}

/// An error of the orchestrator's API leaves the reporter without new facts.
#[test]
fn a_pod_whose_observation_is_old_or_from_the_future_is_kept() {
    let limit = i64::try_from(WORKLOAD_OBSERVATION_MS_MAX).unwrap();
    let finished = json!({"phase": "failed", "finished_at": at(7_200_000)});
    for mut fields in [json!({"phase": "running", "deletion_due_at": at(7_200_000)}), finished] {
        for age in [limit, -limit] {
            fields["observed_at"] = at(age);
            assert!(matches!(stateless(&on("ready", fields.clone())), Verdict::Reclaim(_)), "{age}");
            fields["observed_at"] = at(age + age.signum());
            let kept = Verdict::Keep(Reason::ObservationStale);
            assert_eq!(stateless(&on("ready", fields.clone())), kept, "{age}");
        }
    }
    let early = json!({"phase": "running", "deletion_due_at": at(-7), "observed_at": at(limit + 1)});
    assert_eq!(stateless(&on("ready", early)), later(Reason::Terminating, 7), "it reclaims nothing now");
}
