//! States of many allocations, as a log makes them.

use ipam_api::access::NodeKey;
use ipam_api::name::Name;
use ipam_api::request::AttachmentKey;
use ipam_api::resource::Lifecycle;
use ipam_machine::command::{Allocate, Origin, Started, Text, Via};
use ipam_machine::{Action, At, Command, Grant, State, Terms, apply, fixtures};

/// Nodes that get their pods in turns, and the pods of each.
const NODES: u64 = 200;
const PODS: u64 = 100;
/// Namespaces of the endpoints.
const NAMESPACES: u64 = 200;
/// Odd factor that distributes numbers.
const SPREAD: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;

/// State with this number of allocations from a pool of a /8.
pub(crate) fn filled(count: u64, action: fn(u64) -> Command) -> State {
    let mut state = State::new();
    run_as_read(&mut state, &super::command(super::put_subnet("four", "10.0.0.0/8")));
    run_as_read(&mut state, &super::command(super::put_pool(fixtures::pool("four", "four"))));
    for number in 0..count {
        run_as_read(&mut state, &action(number));
    }
    state
}

/// Applies a command as the log has it: each name in memory of its own. Then empties the ledger, as the store
/// does.
pub(crate) fn run_as_read(state: &mut State, command: &Command) {
    let bytes = postcard::to_stdvec(command).unwrap();
    let command: Command = postcard::from_bytes(&bytes).unwrap();
    let at = At { log_time_ms: 1000, wall_ms: 1_700_000_000_000, leadership: 0 };
    apply(state, at, &command).0.unwrap();
    drop((state.take_touched(), state.take_journaled()));
}

/// Allocation of an endpoint by name, held until its release.
pub(crate) fn claim(number: u64) -> Command {
    let endpoint = format!("host/web-{}-{}", number / 1000, number % 1000);
    super::command(Action::Allocate(fixtures::allocate(&endpoint, "four")))
}

/// ADD of a pod on one of the nodes, by the agent of that node.
pub(crate) fn attachment(number: u64) -> Command {
    let place = number / (NODES * PODS) * NODES + number % NODES;
    let node = NodeKey { realm: Name::default_name(), name: format!("worker-{place}").parse().unwrap() };
    let key = AttachmentKey {
        realm: Name::default_name(),
        node: node.name.clone(),
        config: "pod-network".parse().unwrap(),
        container_id: format!("{:064x}", u128::from(number).wrapping_mul(SPREAD)).parse().unwrap(),
        interface: "eth0".parse().unwrap(),
    };
    let endpoint = format!("pod/team-{}/frontend-{:08x}-{number:05x}", number % NAMESPACES, number / 7);
    let request = Allocate {
        uid: Some(Text::given(format!("{number:08x}-3f59-4f0f-9d11-1f2e3d4c5b6a"))),
        attachment: Some(key),
        lifecycle: Lifecycle::Attached,
        started: Some(started(number, place)),
        ..fixtures::allocate(&endpoint, "four")
    };
    let principal = Text::given(format!("node/{}", node.name));
    let request_id = Text::given(format!("0190f7c2-6d1e-7a60-9f0b-{number:012x}"));
    let origin = Origin { principal, via: Via::Cni, request_id, ..fixtures::origin("bench") };
    Command { origin, terms: Terms::of(Grant::of_node(node)), action: Action::Allocate(request) }
}

fn started(number: u64, node: u64) -> Started {
    let boot_id = Text::given(format!("{node:08x}-3f59-4f0f-9d11-1f2e3d4c5b6a"));
    Started { boot_id, at_us: 1_000_000 + number, start_ticks: Some(100 + number / 10_000) }
}
