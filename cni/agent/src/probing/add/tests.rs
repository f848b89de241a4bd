//! ADDs with silent and with used addresses, with a cluster and a wire that work or fail.

use std::sync::Arc;
use std::time::Duration;

use ipam_api::problem::{Code, Problem, Retry};

use crate::attachment::{Container, Request, add};
use crate::fakes::{FOREIGN, FakeCluster, FakeWire, OWN, body, key};
use crate::journal::Phase;
use crate::node::Node;

/// Time limit of the plugin in tests without lost messages.
const LONG: Duration = Duration::from_secs(20);
/// Time limit of the plugin in tests in which the cluster doesn't answer reports.
const SHORT: Duration = Duration::from_secs(8);

/// All IPv4 addresses that the cluster allocates at first, and as replacements.
const ALWAYS: [&str; 6] = ["10.0.0.1", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6", "10.0.0.7"];

struct Test {
    cluster: FakeCluster,
    node: Arc<Node>,
    _dir: tempfile::TempDir,
}

impl Test {
    async fn new(more: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let cluster = FakeCluster::default();
        let node = cluster.node(dir.path(), more).await;
        Self { cluster, node, _dir: dir }
    }

    /// ADD of a process; returns the addresses that its plugin gets.
    async fn add(&self, wire: &FakeWire, at_us: u64, budget: Duration) -> Result<Vec<String>, Problem> {
        self.add_on(wire, Some("br0"), at_us, budget).await
    }

    async fn add_on(
        &self,
        wire: &FakeWire,
        link: Option<&str>,
        at_us: u64,
        budget: Duration,
    ) -> Result<Vec<String>, Problem> {
        let request = Request::read(&self.node, &body(at_us)).unwrap();
        let link = link.map(|link| link.parse().unwrap());
        let container = Container { link, ..Container::default() };
        let answer = add(self.node.clone(), wire.clone(), request, container, budget).await?;
        let allocated: ipam_api::request::Allocated = answer.read().unwrap();
        let addresses = allocated.interfaces.iter().flat_map(|interface| &interface.addresses);
        Ok(addresses.map(|given| given.address.addr().to_string()).collect())
    }

    /// Phase and allocations of the attachment in the journal.
    fn entry(&self) -> Option<(Phase, Vec<u64>)> {
        self.node
            .journal
            .attachments()
            .get(&key())
            .map(|entry| (entry.phase.clone(), entry.allocations.clone()))
    }

    /// Checks that the ADD failed and left nothing behind.
    #[track_caller]
    fn is_released(&self, problem: &Problem, code: Code) {
        assert_eq!(problem.code, code, "{problem}");
        assert_ne!(problem.retry, Retry::Same, "the plugin would repeat an ADD that is buried");
        assert_eq!((self.entry(), self.cluster.model().held()), (None, Vec::new()));
        let model = self.cluster.model();
        let [release] = model.releases.as_slice() else { panic!("{:?}", model.releases) };
        assert_eq!(release["started"], model.adds.last().unwrap()["started"], "it reaches no later ADD");
        assert!(release.get("endpoint").is_none());
    }
}

#[tokio::test]
async fn silent_addresses_are_reported_and_then_the_gateways_are_probed() {
    let test = Test::new("").await;
    let wire = FakeWire::with(&[]);
    assert_eq!(test.add(&wire, 1, LONG).await.unwrap(), ["10.0.0.1", "2001:db8::2"]);
    let probes = ["Conflict br0 10.0.0.1 2001:db8::2", "Gateway br0 10.0.0.254 2001:db8::ff"];
    assert_eq!(wire.probes(), probes);
    assert_eq!(test.cluster.model().held(), ["10.0.0.1", "2001:db8::2"], "checked");
    assert_eq!(test.cluster.model().reports.len(), 1);
    assert_eq!(test.entry(), Some((Phase::Attached, vec![101, 102])));
    // A checked address needs no other probe.
    test.add(&wire, 2, LONG).await.unwrap();
    assert_eq!((wire.probes().len(), test.cluster.model().reports.len()), (3, 1));
}

#[tokio::test]
async fn a_conflict_is_reported_and_the_replacement_is_probed() {
    let test = Test::new("").await;
    let mut wire = FakeWire::with(&["2001:db8::2"]);
    wire.stations
        .get_mut(&"2001:db8::2".parse().unwrap())
        .unwrap()
        .push(pnet_base::MacAddr(2, 0, 0, 0, 0, 8));
    assert_eq!(test.add(&wire, 1, LONG).await.unwrap(), ["10.0.0.1", "2001:db8::3"]);
    let probes = wire.probes();
    assert_eq!(probes[..2], ["Conflict br0 10.0.0.1 2001:db8::2", "Conflict br0 2001:db8::3"]);
    let model = test.cluster.model();
    let conflict = &model.reports[0].results[1];
    let macs: Vec<String> = conflict.macs.iter().map(ToString::to_string).collect();
    assert_eq!(macs, [FOREIGN.to_string(), "02:00:00:00:00:08".to_owned()]);
    assert_eq!((conflict.allocation, model.adds.len()), (Some(102), 2));
    assert_eq!(model.adds[0], model.adds[1], "the same ADD");
    assert_eq!(model.held(), ["10.0.0.1", "2001:db8::3"]);
    assert_eq!(test.entry(), Some((Phase::Attached, vec![101, 103])));
}

#[tokio::test]
async fn an_add_fails_after_the_last_conflict_that_is_tolerated() {
    let test = Test::new("").await;
    let wire = FakeWire::with(&ALWAYS);
    let problem = test.add(&wire, 1, LONG).await.unwrap_err();
    test.is_released(&problem, Code::AddressConflict);
    assert!(problem.detail.starts_with("10.0.0.5 on br0 is used by 02:00:00:00:00:09"), "{problem}");
    assert!(wire.probes().iter().all(|probe| probe.starts_with("Conflict")), "no gateway was probed");
    assert_eq!(test.cluster.model().reports.len(), ipam_api::limits::CONFLICTS_PER_ADD_MAX);
}

#[tokio::test]
async fn a_conflict_that_is_not_recorded_fails_the_add() {
    let test = Test::new("").await;
    test.cluster.model().is_refusing = true;
    let wire = FakeWire::with(&["10.0.0.1"]);
    let problem = test.add(&wire, 1, LONG).await.unwrap_err();
    test.is_released(&problem, Code::AddressConflict);
    assert!(problem.detail.contains("too many that no other node has confirmed"), "{problem}");
    assert_eq!(wire.probes().len(), 1);
}

#[tokio::test]
async fn an_add_without_a_replacement_fails() {
    let test = Test::new("").await;
    test.cluster.model().is_exhausted = true;
    let problem = test.add(&FakeWire::with(&["2001:db8::2"]), 1, LONG).await.unwrap_err();
    test.is_released(&problem, Code::AddressConflict);
    assert!(problem.detail.ends_with("eth0 has too few IPv6 addresses"), "{problem}");
}

#[tokio::test]
async fn a_requested_address_in_conflict_has_no_replacement() {
    let test = Test::new("").await;
    let mut asked: serde_json::Value = serde_json::from_slice(&body(1)).unwrap();
    asked["interfaces"] = serde_json::json!([{"name": "eth0", "addresses": ["2001:db8:0::2"]}]);
    let request = Request::read(&test.node, asked.to_string().as_bytes()).unwrap();
    let container = Container { link: Some("br0".parse().unwrap()), ..Container::default() };
    let wire = FakeWire::with(&["2001:db8::2"]);
    let problem = add(test.node.clone(), wire, request, container, LONG).await.unwrap_err();
    test.is_released(&problem, Code::AddressConflict);
    assert!(problem.detail.ends_with("so no other one replaces it"), "{problem}");
}

#[tokio::test]
async fn a_silent_gateway_fails_the_add() {
    let test = Test::new("").await;
    let mut wire = FakeWire::with(&[]);
    wire.stations.remove(&"2001:db8::ff".parse().unwrap());
    let problem = test.add(&wire, 1, LONG).await.unwrap_err();
    test.is_released(&problem, Code::GatewayUnreachable);
    assert!(problem.detail.contains("2001:db8::ff does not answer on br0"), "{problem}");
}

#[tokio::test]
async fn a_gateway_that_the_node_will_be_is_not_probed() {
    let test = Test::new("").await;
    let mut wire = FakeWire::with(&[]);
    wire.stations.remove(&"2001:db8::ff".parse().unwrap());
    let request = Request::read(&test.node, &body(1)).unwrap();
    let container = Container { link: "br0".parse().ok(), node_is_gateway: true, ..Container::default() };
    add(test.node.clone(), wire.clone(), request, container, LONG).await.unwrap();
    assert!(wire.probes().iter().all(|probe| probe.starts_with("Conflict")), "{:?}", wire.probes());
}

#[tokio::test]
async fn ipv4_addresses_of_a_container_behind_a_bridge_are_announced() {
    let test = Test::new("").await;
    let wire = FakeWire::with(&[]);
    let request = Request::read(&test.node, &body(1)).unwrap();
    let mac = "02:00:00:00:00:07".parse().ok();
    let container = Container { link: "br0".parse().ok(), mac, ..Container::default() };
    add(test.node.clone(), wire.clone(), request, container, LONG).await.unwrap();
    // The announcement is sent on a task of its own.
    while !wire.probes().contains(&"Announce br0 02:00:00:00:00:07 10.0.0.1".to_owned()) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_probe_that_cannot_be_sent_fails_the_add() {
    let test = Test::new("").await;
    let wire = FakeWire { is_down: true, ..FakeWire::with(&[]) };
    let problem = test.add(&wire, 1, LONG).await.unwrap_err();
    test.is_released(&problem, Code::Internal);
    assert!(problem.detail.contains("check: ip link show br0"), "{problem}");
    assert!(test.cluster.model().reports.is_empty());
}

#[tokio::test]
async fn silent_addresses_are_used_without_a_report_and_probed_again_by_a_repetition() {
    let test = Test::new("").await;
    let wire = FakeWire::with(&[]);
    test.cluster.model().refusal = Some(Code::NoLeader);
    assert_eq!(test.add(&wire, 1, SHORT).await.unwrap(), ["10.0.0.1", "2001:db8::2"]);
    assert_eq!(test.cluster.model().held(), ["10.0.0.1!", "2001:db8::2!"]);
    assert_eq!(test.entry(), Some((Phase::Attached, vec![101, 102])));
    // An agent that was killed before its report leaves the same state.
    test.cluster.model().refusal = None;
    test.add(&wire, 2, LONG).await.unwrap();
    assert_eq!(test.cluster.model().held(), ["10.0.0.1", "2001:db8::2"]);
    assert_eq!(wire.probes().iter().filter(|probe| probe.starts_with("Conflict")).count(), 2);
}

#[tokio::test]
async fn an_agent_killed_after_its_report_knows_that_its_allocations_are_replaced() {
    let test = Test::new("").await;
    let wire = FakeWire::with(&["10.0.0.1"]);
    test.cluster.model().is_hanging = true;
    let request = Request::read(&test.node, &body(1)).unwrap();
    let container = Container { link: "br0".parse().ok(), ..Container::default() };
    let add = tokio::spawn(add(test.node.clone(), wire.clone(), request, container, LONG));
    test.cluster.asked.notified().await;
    add.abort();
    assert!(add.await.unwrap_err().is_cancelled());
    assert_eq!(test.cluster.model().held(), ["10.0.0.3!", "2001:db8::2"]);
    assert_eq!(test.entry(), Some((Phase::Adding, vec![101, 102])), "the inventory asks the cluster first");
    test.cluster.model().is_hanging = false;
    assert_eq!(test.add(&wire, 2, LONG).await.unwrap(), ["10.0.0.3", "2001:db8::2"]);
    assert_eq!(test.entry(), Some((Phase::Attached, vec![103, 102])));
    assert_eq!(wire.probes()[1], "Conflict br0 10.0.0.3");
}

#[tokio::test]
async fn a_conflict_without_a_report_is_released_later() {
    let test = Test::new("").await;
    test.cluster.model().refusal = Some(Code::NoLeader);
    let problem = test.add(&FakeWire::with(&["10.0.0.1"]), 1, SHORT).await.unwrap_err();
    assert_eq!(problem.code, Code::AddressConflict);
    assert!(problem.detail.contains("the cluster has not recorded the conflict: "), "{problem}");
    let (phase, allocations) = test.entry().unwrap();
    assert!(matches!(phase, Phase::Deleting { .. }), "{phase:?}");
    assert_eq!(allocations, [101, 102]);
    assert_eq!(test.cluster.model().held().len(), 2);
    // The next ADD delivers the release before it requests addresses.
    test.cluster.model().refusal = None;
    assert_eq!(test.add(&FakeWire::with(&["10.0.0.1"]), 2, LONG).await.unwrap(), ["10.0.0.3", "2001:db8::4"]);
    assert_eq!(test.cluster.model().releases.len(), 1);
}

#[tokio::test]
async fn addresses_without_a_link_are_used_unprobed() {
    for (more, link) in [("", Some("eth0")), ("", Some("gone")), ("", None), ("probes = false", Some("br0"))]
    {
        let test = Test::new(more).await;
        let wire = FakeWire::with(&ALWAYS);
        let addresses = test.add_on(&wire, link, 1, LONG).await.unwrap();
        assert_eq!(addresses, ["10.0.0.1", "2001:db8::2"], "{more} {link:?}");
        assert!(wire.probes().is_empty() && test.cluster.model().reports.is_empty());
        assert_eq!(test.cluster.model().held(), ["10.0.0.1!", "2001:db8::2!"]);
    }
}

#[tokio::test]
async fn a_configured_link_is_probed_without_a_word_of_the_plugin() {
    let test =
        Test::new("[[link]]\ninterface = \"br0\"\nnetwork = \"blue\"\ncidrs = [\"10.0.0.0/16\"]").await;
    let wire = FakeWire::with(&[]);
    test.add_on(&wire, None, 1, LONG).await.unwrap();
    assert_eq!(wire.probes(), ["Conflict br0 10.0.0.1", "Gateway br0 10.0.0.254"]);
    assert_eq!(test.cluster.model().reports[0].results[0].network.as_str(), "blue");
}

#[tokio::test]
async fn a_container_is_in_no_conflict_with_itself() {
    let test = Test::new("").await;
    test.cluster.model().mac = Some("02:00:00:00:00:09");
    let addresses = test.add(&FakeWire::with(&["10.0.0.1"]), 1, LONG).await.unwrap();
    assert_eq!(addresses, ["10.0.0.1", "2001:db8::2"]);
}

#[tokio::test]
async fn an_address_of_the_host_itself_is_a_conflict() {
    let test = Test::new("").await;
    let wire = FakeWire { own: "10.0.0.1/24", ..FakeWire::with(&[]) };
    assert_eq!(test.add(&wire, 1, LONG).await.unwrap(), ["10.0.0.3", "2001:db8::2"]);
    let macs = test.cluster.model().reports[0].results[0].macs.clone();
    assert_eq!(macs.iter().map(ToString::to_string).collect::<Vec<_>>(), [OWN.to_string()]);
}

#[tokio::test]
async fn an_add_without_time_for_its_probes_can_go_on_later() {
    let test = Test::new("").await;
    let wire = FakeWire::with(&[]);
    let problem = test.add(&wire, 1, Duration::from_millis(90)).await.unwrap_err();
    assert_eq!((problem.code, problem.retry), (Code::DeadlineExceeded, Retry::Same), "{problem}");
    assert!(wire.probes().is_empty());
    assert!(test.cluster.model().releases.is_empty());
    test.add(&wire, 1, LONG).await.unwrap();
}

#[tokio::test]
async fn an_earlier_copy_of_an_add_leaves_the_release_to_the_last() {
    let test = Test::new("").await;
    let wire = FakeWire { is_down: true, ..FakeWire::with(&[]) };
    let other = test.node.adding.enter(&key());
    test.add(&wire, 1, LONG).await.unwrap_err();
    assert!(test.cluster.model().releases.is_empty());
    drop(other);
    let problem = test.add(&wire, 2, LONG).await.unwrap_err();
    test.is_released(&problem, Code::Internal);
}
