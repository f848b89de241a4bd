//! Reports of agents: a node speaks for itself alone, and within its budget of events.

use ipam_api::Code;
use ipam_api::access::Role;
use ipam_api::limits::EVENTS_PER_NODE_MAX;
use ipam_api::node_report::{AgentProblem, Inventory, OrphanEvidence};
use ipam_machine::command::{
    AgentReadiness, Heartbeat, NodeSpec, Orphan, Put, ReleaseOrphans, ReportedBoot, Text,
};
use ipam_machine::model::BootHistory;
use ipam_machine::{Action, Answer, Applied, Grant};

use crate::access::world::{World, add, admin, attachment, ids, labelled, name, node, node_key, with_labels};

fn heartbeat(of: &str, ready: bool) -> Action {
    let problem = (!ready).then_some(AgentProblem::SocketUnavailable);
    Action::Heartbeat(Heartbeat {
        node: node_key(of),
        boot: ReportedBoot { id: Text::given("boot"), number: 1 },
        readiness: AgentReadiness { ready, problem },
        agent_version: Text::given("1.0"),
        links: Vec::new(),
        inventory: Inventory::default(),
    })
}

fn orphan(of: &str, container: &str, id: u64) -> Action {
    let key = attachment(of, container);
    let orphan = Orphan {
        config: key.config,
        container_id: key.container_id,
        interface: key.interface,
        allocations: vec![id.into()],
        evidence: OrphanEvidence::NetnsGone,
    };
    Action::ReleaseOrphans(ReleaseOrphans { node: node_key(of), orphans: vec![orphan] })
}

#[test]
fn a_node_reports_its_own_state_and_that_of_no_other() {
    let mut world = World::new();
    let given = world.run(admin(), Action::Allocate(add("n1", "pod/web/a", "web")));
    let id = ids(&given)[0];
    assert_eq!(world.code(node("n1"), heartbeat("n1", true)), None);
    let before = world.state.digest();
    for action in [heartbeat("n1", false), orphan("n1", "a", id)] {
        assert_eq!(world.code(node("n2"), action), Some(Code::ForeignNode));
    }
    assert_eq!(world.state.digest(), before);
    let released = world.run(node("n1"), orphan("n1", "a", id));
    let Ok(Applied { answer: Answer::OrphansReleased { addresses, stale: 0 }, .. }) = released else {
        panic!("{released:?}")
    };
    assert_eq!(addresses.len(), 1);
}

#[test]
fn a_token_with_labels_reports_nodes_with_these_labels() {
    let mut world = World::new();
    let web = || with_labels(Role::Operator, "team=web");
    assert_eq!(world.code(web(), heartbeat("n1", true)), Some(Code::Forbidden));
    let metadata = labelled(&[("team", "web")]);
    let spec = NodeSpec { realm: ipam_api::Name::default_name(), name: "n1".parse().unwrap(), metadata };
    let put = Put { spec, expect: ipam_machine::command::Expect::Anything };
    world.run(admin(), Action::PutNode(put)).unwrap();
    assert_eq!(world.code(web(), heartbeat("n1", true)), None);
}

#[test]
fn a_token_with_realms_reports_their_nodes_only() {
    let mut world = World::new();
    let grant = Grant { realms: vec![name("prod")], ..Grant::of(Role::Operator) };
    let terms = ipam_machine::Terms::of(grant);
    assert_eq!(world.code(terms, heartbeat("n1", true)), Some(Code::Forbidden));
}

#[test]
fn a_readiness_that_changes_too_often_is_refused_and_heartbeats_without_a_change_are_not() {
    let mut world = World::new();
    assert_eq!(world.code(node("n1"), heartbeat("n1", true)), None);
    let key = node_key("n1");
    let (id, row) = world.state.boots_of(&key.realm, &key.name).map(|(id, row)| (id, row.clone())).unwrap();
    assert_eq!(row.window_events, 2, "its boot and its readiness");
    world.state.spoil_row(id, BootHistory { window_events: EVENTS_PER_NODE_MAX - 1, ..row });
    assert_eq!(world.code(node("n1"), heartbeat("n1", false)), None);
    let code = world.code(node("n1"), heartbeat("n1", true));
    assert_eq!(code, Some(Code::TooManyRequests));
    world.log_time_ms += 10;
    assert_eq!(world.code(node("n1"), heartbeat("n1", false)), None, "it renews the leases");
    assert_eq!(world.state.reports.last().unwrap().1.heard_ms, world.state.log_time_ms());
}
