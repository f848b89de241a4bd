//! Resources, requests and commands that tests and measurements share.
//!
//! Each has the defaults of the fields that a test doesn't vary: `Allocate { uid, ..allocate("pod/web/a", "web") }`.
#![expect(clippy::unwrap_used, reason = "texts of tests are valid")]

use ipam_api::access::Role;
use ipam_api::resource::Lifecycle;

use crate::command::{
    Action, Allocate, AllocateOptions, AutomaticRules, Command, Expect, Grant, InterfaceRequest, Metadata,
    NetworkSpec, Origin, PoolPatterns, PoolSpec, Probing, Put, Routing, Stickiness, SubnetSpec, Terms, Text,
    Via,
};

/// Origin of a command that a principal sends over HTTP.
#[must_use]
pub fn origin(principal: &str) -> Origin {
    Origin {
        principal: Text::identifier(principal),
        via: Via::Http,
        request_id: Text::identifier("request"),
        comment: None,
        not_after_ms: None,
    }
}

/// Command of an administrator.
#[must_use]
pub fn command(action: Action) -> Command {
    Command { origin: origin("tester"), terms: Terms::of(Grant::of(Role::Admin)), action }
}

/// Write without a precondition.
#[must_use]
pub fn put<Spec>(spec: Spec) -> Put<Spec> {
    Put { spec, expect: Expect::Anything }
}

/// Network without metadata.
#[must_use]
pub fn network(name: &str) -> NetworkSpec {
    NetworkSpec { name: name.parse().unwrap(), probing: Probing::default(), metadata: Metadata::default() }
}

/// Subnet of the default network that allows automatic pools.
#[must_use]
pub fn subnet(name: &str, cidr: &str) -> SubnetSpec {
    SubnetSpec {
        name: name.parse().unwrap(),
        cidr: cidr.parse().unwrap(),
        automatic: Some(AutomaticRules::default()),
        ..SubnetSpec::default()
    }
}

/// Pool of all addresses of a subnet, without cooling.
#[must_use]
pub fn pool(name: &str, subnet: &str) -> PoolSpec {
    PoolSpec { name: name.parse().unwrap(), subnet: subnet.parse().unwrap(), ..PoolSpec::default() }
}

/// Request of an endpoint for addresses of an IPv4 pool on `eth0`, held until they are released.
#[must_use]
pub fn allocate(endpoint: &str, pool: &str) -> Allocate {
    let pools = PoolPatterns { ipv4: vec![pool.parse().unwrap()], ipv6: Vec::new() };
    allocate_for(endpoint, vec![InterfaceRequest { pools, ..interface("eth0") }])
}

/// Request of an endpoint for addresses of these interfaces, held until they are released.
#[must_use]
pub fn allocate_for(endpoint: &str, interfaces: Vec<InterfaceRequest>) -> Allocate {
    Allocate {
        endpoint: endpoint.parse().unwrap(),
        uid: None,
        labels: Default::default(),
        node: None,
        attachment: None,
        stickiness: Stickiness::default(),
        lifecycle: Lifecycle::Held,
        interfaces,
        automatic_pool: None,
        started: None,
        options: AllocateOptions::default(),
        routing: Routing::default(),
    }
}

/// Interface request for addresses of all families from any default pool.
#[must_use]
pub fn interface(name: &str) -> InterfaceRequest {
    InterfaceRequest {
        name: name.parse().unwrap(),
        subnets: Vec::new(),
        pools: PoolPatterns::default(),
        default_pools: PoolPatterns::default(),
        families: Vec::new(),
        addresses: Vec::new(),
        mac: None,
        network_attachment: None,
        link_addresses: Vec::new(),
    }
}
