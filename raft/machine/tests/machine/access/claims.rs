//! Claims of nodes about pods, verified by the reports of a watcher.

use ipam_api::limits::{
    EVENTS_PER_NODE_MAX, PODS_FORGOTTEN_MS, PODS_PER_REPORT_MAX, PODS_REPORTED_MAX, VERIFIED_MS,
    VERIFIED_RENEWAL_MS,
};
use ipam_api::resource::EndpointKey;
use ipam_api::{Code, Selector};
use ipam_machine::command::cause::Claimed;
use ipam_machine::command::{
    Allocate, Cause, Controller, PoolSelectors, Put, ReportPods, ReportedPod, Text, Transaction,
};
use ipam_machine::{Action, Answer, EventKind, Outcome};

use super::world::{World, add, admin, labelled, name, node, pool, under_key};

fn texts(labels: &[(&str, &str)]) -> std::collections::BTreeMap<Text, Text> {
    labelled(labels).labels
}

fn controller(kind: &str, uid: Option<&str>) -> Controller {
    Controller {
        group: Text::given("apps"),
        kind: Text::given(kind),
        name: "w".parse().unwrap(),
        uid: uid.map(Text::given),
    }
}

fn reported(uid: &str, node: &str, endpoint: &str) -> ReportedPod {
    ReportedPod {
        uid: Text::given(uid),
        endpoint: endpoint.parse().unwrap(),
        node: node.parse().unwrap(),
        labels: texts(&[("app", "web"), ("tier", "front")]),
        controllers: vec![controller("ReplicaSet", Some("r1")), controller("Deployment", Some("d1"))],
    }
}

fn report(pods: &[ReportedPod], gone: &[&str], complete: bool) -> Action {
    let gone = gone.iter().map(|uid| Text::given(*uid)).collect();
    Action::ReportPods(ReportPods { realm: name("default"), pods: pods.to_vec(), gone, complete })
}

/// ADD of a pod of node `n1`.
fn claim(uid: &str, endpoint: &str) -> Allocate {
    Allocate { uid: Some(Text::given(uid)), ..add("n1", endpoint, "web") }
}

fn verified() -> World {
    let mut world = World::new();
    world.run(admin(), report(&[reported("u1", "n1", "pod/shop/w-1")], &[], true)).unwrap();
    world
}

fn cause(outcome: Outcome) -> Cause {
    *outcome.unwrap_err().cause
}

fn run(world: &mut World, request: Allocate) -> Outcome {
    world.run(node("n1"), Action::from(request))
}

#[test]
fn true_claims_obtain_addresses() {
    let changes: [fn(&mut Allocate); 5] = [
        |_| {},
        |request| request.labels = texts(&[("app", "web"), ("tier", "front")]),
        |request| request.labels = texts(&[("tier", "front")]),
        |request| request.stickiness.controller = Some(controller("Deployment", Some("d1"))),
        |request| request.stickiness.controller = Some(controller("ReplicaSet", None)),
    ];
    for change in changes {
        let mut request = claim("u1", "pod/shop/w-1");
        change(&mut request);
        let outcome = run(&mut verified(), request.clone());
        assert!(matches!(outcome.unwrap().answer, Answer::Allocated { .. }), "{request:?}");
    }
}

#[test]
fn a_false_claim_obtains_nothing_and_raises_one_event() {
    let label = |key| Claimed::Label { key: Text::given(key) };
    type Change = fn(&mut Allocate);
    let cases: [(Change, Claimed); 10] = [
        (|request| request.uid = None, Claimed::Uid),
        (|request| request.endpoint = "pod/shop/w-2".parse().unwrap(), Claimed::Name),
        (|request| request.endpoint = "pod/bank/w-1".parse().unwrap(), Claimed::Name),
        (|request| request.endpoint = "vm/shop/w-1".parse().unwrap(), Claimed::Name),
        (|request| request.labels = texts(&[("app", "db")]), label("app")),
        (|request| request.labels = texts(&[("app", "web"), ("zone", "a")]), label("zone")),
        (
            |request| request.stickiness.controller = Some(controller("Deployment", Some("d2"))),
            Claimed::Controller,
        ),
        (|request| request.stickiness.controller = Some(controller("Job", None)), Claimed::Controller),
        (|request| request.uid = Some(Text::given("u2")), Claimed::Node),
        (
            |request| {
                request.endpoint = "container/shop/w-1".parse().unwrap();
                request.labels = texts(&[("app", "web")]);
            },
            label("app"),
        ),
    ];
    for (change, claimed) in cases {
        let mut world = verified();
        world.run(admin(), report(&[reported("u2", "n2", "pod/shop/w-1")], &[], true)).unwrap();
        let mut request = claim("u1", "pod/shop/w-1");
        change(&mut request);
        let (held, revision) = (world.state.allocations.len(), world.state.revision());
        let (outcome, events) = world.run_with_events(node("n1"), Action::from(request.clone()));
        let refusal = outcome.unwrap_err();
        assert_eq!(refusal.code(), Code::ClaimMismatch, "{request:?}");
        let Cause::ClaimMismatch { claimed: found, .. } = *refusal.cause else { panic!("{refusal:?}") };
        assert_eq!(found, claimed, "{request:?}");
        let [event] = events.as_slice() else { panic!("{events:?}") };
        let EventKind::ClaimMismatch { node, endpoint, .. } = &event.kind else { panic!("{event:?}") };
        assert_eq!((node.name.as_str(), endpoint), ("n1", &request.endpoint));
        assert_eq!(world.state.allocations.len(), held);
        assert!(event.revision > revision, "the event has a name of its own");
    }
}

#[test]
fn endpoints_that_are_no_pods_claim_nothing_that_pools_select_by() {
    let mut world = verified();
    assert!(run(&mut world, claim("c1", "container/default/c1")).is_ok());
    let namespace = cause(run(&mut world, claim("c2", "container/shop/c2")));
    assert!(matches!(namespace, Cause::ClaimMismatch { claimed: Claimed::Namespace, .. }), "{namespace:?}");
    let mut owned = claim("c3", "container/default/c3");
    owned.stickiness.controller = Some(controller("Deployment", None));
    let owned = cause(run(&mut world, owned));
    assert!(matches!(owned, Cause::ClaimMismatch { claimed: Claimed::Controller, .. }), "{owned:?}");
}

#[test]
fn an_unknown_pod_waits_for_its_report() {
    let mut world = verified();
    let request = claim("u9", "pod/shop/w-9");
    let refusal = run(&mut world, request.clone()).unwrap_err();
    assert_eq!(refusal.code(), Code::PodUnreported);
    world.run(admin(), report(&[reported("u9", "n1", "pod/shop/w-9")], &[], false)).unwrap();
    assert!(run(&mut world, request).is_ok());
    // A repetition under the same key is no repetition of the refusal.
    let keyed = || (under_key(node("n1"), "k", 7), Action::from(claim("u8", "pod/shop/w-8")));
    let (terms, action) = keyed();
    assert_eq!(world.code(terms, action), Some(Code::PodUnreported));
    world.run(admin(), report(&[reported("u8", "n1", "pod/shop/w-8")], &[], false)).unwrap();
    let (terms, action) = keyed();
    assert_eq!(world.code(terms, action), None);
    world.run(admin(), report(&[], &["u1"], false)).unwrap();
    let gone = run(&mut world, claim("u1", "pod/shop/w-1")).unwrap_err();
    assert_eq!(gone.code(), Code::PodUnreported);
}

#[test]
fn pools_select_by_the_labels_of_the_pod_whatever_its_node_leaves_out() {
    let mut world = verified();
    let Action::PutPool(Put { mut spec, expect }) = pool("others", "lan", "10.0.0.240", labelled(&[])) else {
        unreachable!()
    };
    let selector: Selector = "app notin (web)".parse().unwrap();
    spec.selectors = PoolSelectors { endpoint_selector: selector, ..spec.selectors };
    world.run(admin(), Action::PutPool(Put { spec, expect })).unwrap();
    let endpoint = "pod/shop/w-1";
    let request = Allocate { uid: Some(Text::given("u1")), ..add("n1", endpoint, "others") };
    assert!(request.labels.is_empty());
    assert_eq!(run(&mut world, request).unwrap_err().code(), Code::NoPoolFits);
}

#[test]
fn operators_and_realms_without_a_complete_report_are_not_verified() {
    let mut world = World::new();
    world.run(admin(), report(&[reported("u1", "n1", "pod/shop/w-1")], &[], false)).unwrap();
    assert!(run(&mut world, claim("u7", "pod/shop/w-7")).is_ok());
    let mut world = verified();
    let of_operator = claim("u7", "pod/shop/w-7");
    assert!(world.run(admin(), Action::from(of_operator)).is_ok());
    let other = EndpointKey { realm: name("prod"), ..reported("u1", "n1", "pod/shop/w-1").endpoint };
    assert!(!world.state.is_verified(&other.realm));
}

#[test]
fn verification_ends_with_the_reports_and_is_renewed_by_them() {
    let mut world = verified();
    let repeat = report(&[reported("u1", "n1", "pod/shop/w-1")], &[], true);
    let Action::ReportPods(said) = &repeat else { unreachable!() };
    assert!(!world.state.is_news_of_pods(said));
    let revision = world.state.revision();
    world.run(admin(), repeat.clone()).unwrap();
    assert_eq!(world.state.revision(), revision, "a repetition changes nothing");
    world.log_time_ms += VERIFIED_RENEWAL_MS + 1;
    world.run(admin(), Action::Expire).unwrap();
    assert!(world.state.is_news_of_pods(said), "the verification is to be renewed");
    world.run(admin(), repeat).unwrap();
    world.log_time_ms += VERIFIED_MS - 1;
    assert_eq!(run(&mut world, claim("u9", "pod/shop/w-9")).unwrap_err().code(), Code::PodUnreported);
    world.log_time_ms += 1;
    assert!(run(&mut world, claim("u9", "pod/shop/w-9")).is_ok(), "no report, no verification");
}

#[test]
fn pods_of_a_realm_without_reports_are_forgotten_in_bounded_steps() {
    let mut world = World::new();
    for part in 0..6 {
        let pods: Vec<_> = (0..250)
            .map(|number| reported(&format!("u{part}-{number}"), "n1", &format!("pod/shop/w-{number}")))
            .collect();
        world.run(admin(), report(&pods, &[], true)).unwrap();
    }
    assert_eq!(world.state.reported_pods.len(), 1500);
    let due = world.state.next_expiry_ms();
    world.log_time_ms += VERIFIED_MS + PODS_FORGOTTEN_MS;
    assert_eq!(due, Some(world.log_time_ms));
    let mut steps = 0;
    while !world.state.reported_realms.is_empty() {
        let before = world.state.reported_pods.len();
        world.run(admin(), Action::Expire).unwrap();
        assert!(world.state.reported_pods.len() < before || before == 0, "{before}");
        steps += 1;
    }
    assert!(steps > 1, "each command removes a bounded number");
    assert_eq!((world.state.reported_pods.len(), world.state.next_expiry_ms()), (0, None));
}

#[test]
fn reports_are_checked_and_a_transaction_with_a_false_claim_is_refused_as_a_whole() {
    let mut world = verified();
    let mut foreign = reported("u5", "n1", "pod/shop/w-5");
    foreign.endpoint.realm = name("prod");
    assert_eq!(
        world.run(admin(), report(&[foreign], &[], false)).unwrap_err().code(),
        Code::ConflictingFields
    );
    let many: Vec<_> = (0..257).map(|number| reported(&format!("u{number}"), "n1", "pod/shop/w-5")).collect();
    assert_eq!(world.run(admin(), report(&many, &[], false)).unwrap_err().code(), Code::LimitExceeded);
    let twice = report(&many[..1], &["u0"], false);
    assert_eq!(world.run(admin(), twice).unwrap_err().code(), Code::ConflictingFields);
    let four = ReportedPod { controllers: vec![controller("Job", None); 4], ..many[0].clone() };
    assert_eq!(world.run(admin(), report(&[four], &[], false)).unwrap_err().code(), Code::LimitExceeded);
    assert_eq!(world.run(node("n1"), report(&[], &[], false)).unwrap_err().code(), Code::Forbidden);
    let fair = Action::from(claim("u1", "pod/shop/w-1"));
    let unfair = Action::from(Allocate { uid: None, ..claim("u1", "pod/shop/w-2") });
    let steps = Transaction { preconditions: Vec::new(), steps: vec![fair, unfair] };
    let (outcome, events) = world.run_with_events(node("n1"), Action::Transaction(steps));
    assert_eq!(outcome.unwrap_err().code(), Code::ClaimMismatch);
    assert_eq!((events.len(), world.state.allocations.len()), (1, 0));
}

#[test]
fn false_claims_are_on_the_account_of_their_node() {
    let mut world = verified();
    let mut stolen = claim("u1", "pod/shop/w-1");
    stolen.labels = texts(&[("app", "db")]);
    for _ in 0..EVENTS_PER_NODE_MAX {
        let code = world.code_unchecked(node("n1"), Action::from(stolen.clone()));
        assert_eq!(code, Some(Code::ClaimMismatch));
    }
    let (refused, events) = world.run_with_events(node("n1"), Action::from(stolen));
    assert_eq!((refused.unwrap_err().code(), events.len()), (Code::TooManyRequests, 0));
}

#[test]
fn reported_pods_have_a_limit() {
    let mut world = World::new();
    let small =
        ReportedPod { labels: texts(&[]), controllers: Vec::new(), ..reported("u", "n1", "pod/shop/w-1") };
    let mut number = 0;
    while number < PODS_REPORTED_MAX {
        let count = PODS_PER_REPORT_MAX.min(PODS_REPORTED_MAX - number);
        let uid = |offset| Text::given(format!("u{}", number + offset));
        let pods: Vec<_> =
            (0..count).map(|offset| ReportedPod { uid: uid(offset), ..small.clone() }).collect();
        assert_eq!(world.code_unchecked(admin(), report(&pods, &[], false)), None);
        number += count;
    }
    let more = |uid| report(&[ReportedPod { uid: Text::given(uid), ..small.clone() }], &[], true);
    assert_eq!(world.code_unchecked(admin(), more("another")), Some(Code::LimitExceeded));
    assert_eq!(world.code_unchecked(admin(), more("u0")), None, "it is known");
}
