//! Frees addresses of nodes that send no heartbeats and whose addresses answer no probes.
//!
//! `apply` checks each allocation again, so an address that answers meanwhile is kept.

use std::collections::BTreeMap;

use ipam_api::access::NodeKey;
use ipam_api::limits::RECLAIM_LINES_MAX;
use ipam_machine::command::{Reclaim, ReclaimReason};
use ipam_machine::id::AllocationId;
use ipam_machine::{Action, Answer, State};

use super::gc::GcSettings;
use super::leader::Leader;
use super::status::Run;
use super::task::Task;

/// Allocations that one round frees at most; the next round frees the others.
const DUE_MAX: usize = 4_096;

/// Proposes the reclaim of allocations that are due, one entry for each node.
pub(super) async fn run(leader: &Leader<'_>, gc: GcSettings) -> Run {
    if !gc.silent_nodes {
        return Run::of(true);
    }
    let state = leader.node.stale().0;
    // A partition can silence every node, so the search may examine all allocations.
    let due = ipam_raft::blocking(move || due(&state, gc.node_grace_ms, DUE_MAX)).await;
    let mut run = Run::of(due.is_ok());
    for (node, allocations) in due.unwrap_or_default() {
        let reason = ReclaimReason::NodeSilent { grace_ms: gc.node_grace_ms };
        match leader.propose(Task::SilentNodes, Action::Reclaim(Reclaim { node, reason, allocations })).await
        {
            Some(Answer::Reclaimed { addresses, .. }) => run.reclaimed += addresses.len() as u64,
            _ => run.is_complete = false,
        }
    }
    run
}

/// Allocations that are due, by node. `max` counts only due allocations: suspects without probe results stay
/// first in each round, and would otherwise use up the limit.
fn due(state: &State, grace_ms: u64, max: usize) -> BTreeMap<NodeKey, Vec<AllocationId>> {
    let mut due: BTreeMap<NodeKey, Vec<AllocationId>> = BTreeMap::new();
    let suspects = state.suspects(grace_ms, None).filter(|suspect| suspect.is_due);
    for suspect in suspects.take(max) {
        let of_node = due.entry(suspect.report.node.clone()).or_default();
        if of_node.len() < RECLAIM_LINES_MAX {
            of_node.push(suspect.allocation);
        }
    }
    due
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use ipam_api::name::Name;
    use ipam_api::node_report::Inventory;
    use ipam_api::request::AttachmentKey;
    use ipam_api::resource::Lifecycle;
    use ipam_machine::command::{
        AgentReadiness, Heartbeat, Link, ProbeResult, Probing, ReportProbes, ReportedBoot, Started,
        SubnetSpec, Text,
    };
    use ipam_machine::{At, apply, fixtures};

    use super::*;

    const GRACE_MS: u64 = 30_000;
    const LINK: &str = "10.0.0.0/24";

    fn node(name: &str) -> NodeKey {
        NodeKey { realm: Name::default_name(), name: name.parse().unwrap() }
    }

    /// State that changes by actions.
    #[derive(Default)]
    struct World {
        state: State,
        now_ms: u64,
    }

    impl World {
        fn run(&mut self, action: Action) {
            let at = At { log_time_ms: self.now_ms, wall_ms: self.now_ms, leadership: 0 };
            apply(&mut self.state, at, &fixtures::command(action)).0.unwrap();
        }

        fn heartbeat(&mut self, name: &str) {
            self.run(Action::Heartbeat(Heartbeat {
                node: node(name),
                boot: ReportedBoot { id: Text::given("b"), number: 1 },
                readiness: AgentReadiness { ready: true, problem: None },
                agent_version: Text::given("1.0"),
                links: vec![Link { network: Name::default_name(), cidr: LINK.parse().unwrap() }],
                inventory: Inventory::default(),
            }));
        }

        fn attach(&mut self, name: &str, container: &str) {
            let key = AttachmentKey {
                realm: Name::default_name(),
                node: name.parse().unwrap(),
                config: "net".parse().unwrap(),
                container_id: container.parse().unwrap(),
                interface: "eth0".parse().unwrap(),
            };
            let mut request = fixtures::allocate(&format!("pod/web/{container}"), "web");
            (request.node, request.attachment) = (Some(key.node.clone()), Some(key));
            request.lifecycle = Lifecycle::Attached;
            request.started = Some(Started { boot_id: Text::given("b"), at_us: 1, start_ticks: None });
            self.run(Action::Allocate(request));
        }

        /// Probe report of n3: the gateway answers, and the other addresses answer if `answers` is true.
        fn probe(&mut self, addresses: &[IpAddr], answers: bool) {
            let result = |address: IpAddr, answers: bool| ProbeResult {
                network: Name::default_name(),
                address,
                macs: if answers { vec!["02:00:00:00:00:01".parse().unwrap()] } else { Vec::new() },
                allocation: None,
            };
            let mut results = vec![result("10.0.0.1".parse().unwrap(), true)];
            results.extend(addresses.iter().map(|address| result(*address, answers)));
            self.run(Action::ReportProbes(ReportProbes { node: node("n3"), results }));
        }
    }

    /// The node that is silent for longer has more suspects than a round takes, and no prober heard them.
    #[test]
    fn suspects_without_proof_keep_no_due_ones_from_their_round() {
        let mut world = World { now_ms: 1, ..World::default() };
        let probing = Probing { conflicts: Some(true), ..Probing::default() };
        let gateway = Some("10.0.0.1".parse().unwrap());
        let subnet = SubnetSpec { gateway, probing, ..fixtures::subnet("lan", LINK) };
        world.run(Action::PutSubnet(fixtures::put(subnet)));
        world.run(Action::PutPool(fixtures::put(fixtures::pool("web", "lan"))));
        ["n1", "n2", "n3"].iter().for_each(|name| world.heartbeat(name));
        (0..8).for_each(|number| world.attach("n1", &format!("unheard-{number}")));
        world.now_ms += 1_000;
        world.heartbeat("n2");
        world.attach("n2", "heard");
        let heard: Vec<IpAddr> = world
            .state
            .allocations
            .iter()
            .filter(|(_, row)| row.node.as_ref().is_some_and(|name| name.as_str() == "n2"))
            .map(|(_, row)| row.address)
            .collect();
        world.probe(&heard, true);
        for _ in 0..8 {
            world.now_ms += 11_000;
            world.heartbeat("n3");
            world.probe(&heard, false);
        }
        let suspects: Vec<_> = world.state.suspects(GRACE_MS, None).collect();
        assert_eq!(suspects.first().map(|one| &one.report.node), Some(&node("n1")));
        assert_eq!(suspects.len(), 9);
        let due = due(&world.state, GRACE_MS, 4);
        assert_eq!(due.keys().collect::<Vec<_>>(), [&node("n2")]);
        assert_eq!(due[&node("n2")].len(), 1);
    }
}
