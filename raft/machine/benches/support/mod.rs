//! What both measurements begin with.
#![allow(dead_code, reason = "each needs another part of it")]

use ipam_machine::command::Text;
use std::hint::black_box;

use ipam_api::access::Role;
use ipam_api::limits::AUTOMATIC_POOL_ADDRESSES_MAX;
use ipam_api::name::Name;
use ipam_api::resource::Strategy;
use ipam_machine::command::{
    AddressLimits, AutomaticRules, Dns, Expect, Metadata, NamespaceSpec, NodeSpec, Origin, PoolPatterns,
    PoolSelectors, PoolSpec, Put, Quota, SubnetSpec, Via,
};
use ipam_machine::{Action, At, Command, Grant, State, Terms, apply};

pub(crate) fn name(text: &str) -> Name {
    text.parse().unwrap()
}

pub(crate) fn command(action: Action) -> Command {
    let origin = Origin {
        principal: Text::given("bench"),
        via: Via::Cni,
        request_id: Text::given("0190f7c2-6d1e-7a60-9f0b-5b9f6a3c2d11"),
        comment: None,
        not_after_ms: None,
    };
    Command { origin, terms: Terms::of(Grant::of(Role::Admin)), action }
}

pub(crate) fn run(state: &mut State, action: Action) {
    let at = At { log_time_ms: 1000, wall_ms: 1_700_000_000_000, leadership: 0 };
    let command = command(action);
    black_box(apply(state, at, black_box(&command))).0.unwrap();
}

pub(crate) fn put_subnet(subnet: &str, cidr: &str) -> Action {
    let spec = SubnetSpec {
        name: name(subnet),
        network: Name::default_name(),
        cidr: cidr.parse().unwrap(),
        gateway: None,
        vlan: None,
        mtu: None,
        routes: Vec::new(),
        dns: Dns::default(),
        automatic: Some(AutomaticRules {
            max_size: Some(AUTOMATIC_POOL_ADDRESSES_MAX),
            ..AutomaticRules::default()
        }),
        metadata: Metadata::default(),
    };
    Action::PutSubnet(Put { spec, expect: Expect::Anything })
}

pub(crate) fn put_pool(spec: PoolSpec) -> Action {
    Action::PutPool(Put { spec, expect: Expect::Anything })
}

/// A pool that has all of its subnet, for anybody who names it.
pub(crate) fn whole(pool: &str, subnet: &str) -> PoolSpec {
    PoolSpec {
        name: name(pool),
        subnet: name(subnet),
        network: None,
        ranges: Vec::new(),
        exclude: Vec::new(),
        strategy: Strategy::Next,
        cooling_ms: 0,
        strict_cooling: false,
        allow_edges: false,
        gateway: None,
        routes: Vec::new(),
        default: false,
        selectors: PoolSelectors::default(),
        scale_down: Default::default(),
        disabled: false,
        terminating: false,
        drains_to: None,
        reclaim: None,
        metadata: Metadata::default(),
    }
}

fn labelled((key, value): (&str, &str)) -> Metadata {
    let labels = [(Text::given(key), Text::given(value)), (Text::given("kind"), Text::given("metal"))].into();
    Metadata { labels, ..Metadata::default() }
}

pub(crate) fn put_node(node: &str, label: (&str, &str)) -> Action {
    let realm = Name::default_name();
    let spec = NodeSpec { realm, name: node.parse().unwrap(), metadata: labelled(label) };
    Action::PutNode(Put { spec, expect: Expect::Anything })
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
    Action::PutNamespace(Put { spec, expect: Expect::Anything })
}
