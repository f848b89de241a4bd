//! Common fixtures of the benchmarks.
#![allow(dead_code, reason = "each needs another part of it")]

pub(crate) mod fill;

use ipam_machine::command::Text;
use std::hint::black_box;

use ipam_api::access::Role;
use ipam_api::limits::AUTOMATIC_POOL_ADDRESSES_MAX;
use ipam_api::name::Name;
use ipam_machine::command::{
    AddressLimits, AutomaticRules, Metadata, NamespaceSpec, NodeSpec, Origin, PoolPatterns, PoolSpec, Quota,
    SubnetSpec, Via,
};
use ipam_machine::fixtures::put;
use ipam_machine::{Action, At, Command, Grant, State, Terms, apply, fixtures};

pub(crate) fn name(text: &str) -> Name {
    text.parse().unwrap()
}

pub(crate) fn command(action: Action) -> Command {
    let (via, request_id) = (Via::Cni, Text::given("0190f7c2-6d1e-7a60-9f0b-5b9f6a3c2d11"));
    let origin = Origin { via, request_id, ..fixtures::origin("bench") };
    Command { origin, terms: Terms::of(Grant::of(Role::Admin)), action }
}

pub(crate) fn run(state: &mut State, action: Action) {
    let at = At { log_time_ms: 1000, wall_ms: 1_700_000_000_000, leadership: 0 };
    let command = command(action);
    black_box(apply(state, at, black_box(&command))).0.unwrap();
}

pub(crate) fn put_subnet(subnet: &str, cidr: &str) -> Action {
    let rules = AutomaticRules { max_size: Some(AUTOMATIC_POOL_ADDRESSES_MAX), ..AutomaticRules::default() };
    Action::PutSubnet(put(SubnetSpec { automatic: Some(rules), ..fixtures::subnet(subnet, cidr) }))
}

pub(crate) fn put_pool(spec: PoolSpec) -> Action {
    Action::PutPool(put(spec))
}

fn labelled((key, value): (&str, &str)) -> Metadata {
    let labels = [(Text::given(key), Text::given(value)), (Text::given("kind"), Text::given("metal"))].into();
    Metadata { labels, ..Metadata::default() }
}

pub(crate) fn put_node(node: &str, label: (&str, &str)) -> Action {
    let realm = Name::default_name();
    let spec = NodeSpec { realm, name: node.parse().unwrap(), metadata: labelled(label) };
    Action::PutNode(put(spec))
}

pub(crate) fn put_namespace(namespace: &str, label: (&str, &str)) -> Action {
    let limits = AddressLimits { ipv4: Some(1 << 32), ipv6: Some(1 << 32) };
    let spec = NamespaceSpec {
        realm: Name::default_name(),
        name: namespace.parse().unwrap(),
        // Wide enough, and looked at all the same.
        quota: Quota { whole: limits, per_application: limits, ..Quota::default() },
        default_pools: PoolPatterns::default(),
        metadata: labelled(label),
    };
    Action::PutNamespace(put(spec))
}
