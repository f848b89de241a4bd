//! Random heartbeats and orphans.

use ipam_api::access::NodeKey;
use ipam_api::name::Name;
use ipam_api::node_report::{AgentProblem, Inventory, OrphanEvidence};
use ipam_api::resource::EndpointKey;
use ipam_machine::Action;
use ipam_machine::command::{
    AgentReadiness, EndIncarnation, Heartbeat, Orphan, ReleaseOrphans, ReportPods, ReportedBoot, ReportedPod,
    Text,
};

use super::Draw;

impl Draw<'_> {
    pub(super) fn node(&mut self) -> NodeKey {
        let name = self.dice.pick(&["default/n1", "default/n1", "default/n2", "prod/n1"]);
        let (realm, name) = name.split_once('/').unwrap();
        NodeKey { realm: realm.parse().unwrap(), name: name.parse().unwrap() }
    }

    /// A heartbeat, mostly of the node's present boot; boots mostly have the numbers of their ids.
    pub(super) fn heartbeat(&mut self) -> Action {
        let node = self.node();
        let present = self.state.report_of(&node).map_or(1, |(_, report)| report.boot.number);
        let number = match self.dice.below(10) {
            0 => present.saturating_sub(1).max(1),
            1 | 2 => present + 1,
            3 => present + 3,
            _ => present,
        };
        let own = if self.dice.chance(90) { number } else { 1 + self.dice.below(6) };
        let ready = self.dice.chance(80);
        let problem = (!ready).then_some(AgentProblem::JournalUnwritable);
        let inventory = if ready { self.state.inventory(&node) } else { Inventory::default() };
        Action::Heartbeat(Heartbeat {
            node,
            boot: ReportedBoot { id: Text::given(format!("b{own}")), number },
            readiness: AgentReadiness { ready, problem },
            agent_version: Text::given(self.dice.pick(&["1.0", "1.0", "1.1"])),
            links: self.links(),
            inventory,
        })
    }

    /// An incarnation that lives or lived, with all of its attached allocations or fewer.
    pub(super) fn end_incarnation(&mut self) -> Action {
        let rows: Vec<_> = self.state.endpoints.iter().map(|(_, row)| row.clone()).collect();
        let with_uid: Vec<_> = rows.into_iter().filter(|row| row.uid.is_some()).collect();
        let place = self.dice.below(with_uid.len().max(1) as u64);
        let Some(row) = with_uid.get(usize::try_from(place).unwrap()) else { return self.orphans() };
        let mut allocations = row.allocations.to_vec();
        if self.dice.chance(20) {
            allocations.pop();
        }
        let uid = if self.dice.chance(10) { Text::given("u-other") } else { row.uid.clone().unwrap() };
        Action::EndIncarnation(EndIncarnation { endpoint: row.key.clone(), uid, allocations })
    }

    /// Pods of one of two realms: new, changed and gone ones.
    pub(super) fn report_pods(&mut self) -> Action {
        let realm: Name = self.dice.pick(&["default", "prod"]).parse().unwrap();
        let (mut pods, mut gone) = (Vec::new(), Vec::new());
        for uid in ["u1", "u2", "u3", "u4"] {
            match self.dice.below(4) {
                0 => gone.push(Text::given(uid)),
                1 => continue,
                _ => {
                    let (node, app) = (self.dice.pick(&["n1", "n2"]), self.dice.pick(&["a", "b"]));
                    let endpoint = format!("pod/web/{uid}").parse().unwrap();
                    pods.push(ReportedPod {
                        uid: Text::given(uid),
                        endpoint: EndpointKey { realm: realm.clone(), ..endpoint },
                        node: node.parse().unwrap(),
                        labels: [(Text::given("app"), Text::given(app))].into(),
                        controllers: Vec::new(),
                    });
                }
            }
        }
        Action::ReportPods(ReportPods { realm, pods, gone, complete: self.dice.chance(50) })
    }

    /// Attachments as they are, as they were, or of containers that never were.
    pub(super) fn orphans(&mut self) -> Action {
        let node = self.node();
        let mut orphans = Vec::new();
        for _ in 0..self.dice.below(4) {
            let mut key = self.attachment();
            (key.realm, key.node) = (node.realm.clone(), node.name.clone());
            let mut allocations =
                self.state.attachment(&key).map_or_else(Vec::new, |(_, row)| row.allocations.to_vec());
            if self.dice.chance(20) {
                allocations.pop();
            }
            if self.dice.chance(20) {
                allocations.push(7.into());
            }
            let evidence = match self.dice.below(3) {
                0 => OrphanEvidence::NetnsGone,
                1 => OrphanEvidence::EarlierBoot,
                _ => OrphanEvidence::NotInGcList,
            };
            let (config, container_id, interface) = (key.config, key.container_id, key.interface);
            orphans.push(Orphan { config, container_id, interface, allocations, evidence });
        }
        Action::ReleaseOrphans(ReleaseOrphans { node, orphans })
    }
}
