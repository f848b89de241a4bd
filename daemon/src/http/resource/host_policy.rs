//! `/v1/host-policies`.

use ipam_api::host_policy::{self, HostPolicy, HostPolicyStatus, MaxUnavailable};
use ipam_api::name::{Name, ObjectName, ResourceName};
use ipam_api::resource::{EndpointKey, EndpointKind, Resource};
use ipam_api::{Problem, Selector};
use ipam_machine::State;
use ipam_machine::command::{self, HostPolicyInterface, HostPolicySpec, Kind, Text};
use ipam_machine::model::Node;
use serde_json::Value;

use super::named::{NamedResource, View, of_kind};
use crate::http::convert::{conversions, meta, strings, texts};
use crate::http::list::{Row, Shape};

pub(in crate::http) struct HostPolicies;

/// Fields, filters and orders of the list.
pub(in crate::http) const SHAPE: Shape = Shape {
    path: "/v1/host-policies",
    own: &[
        Row::text("name", "name"),
        Row::text("realm", "realm"),
        Row::shown(&["node_selector", "interfaces", "capture", "desired_state", "max_unavailable", "status"]),
        Row::number("nodes", "status.nodes"),
        Row::number("holding", "status.holding"),
        Row::text("managed_by", "managed_by").unshown(),
    ],
    named: true,
    addressed: false,
};

conversions! {
    HostPolicy <=> HostPolicySpec {
        name,
        realm,
        node_selector,
        interfaces(interfaces_in, interfaces_out),
        capture(texts, captures_out),
        desired_state(state_in, state_out),
        max_unavailable(max_in, max_out),
    }
}

fn interfaces_in(interfaces: Vec<host_policy::HostPolicyInterface>) -> Vec<HostPolicyInterface> {
    let one = |one: host_policy::HostPolicyInterface| {
        let host_policy::HostPolicyInterface { name, ipv4_pools, ipv6_pools, clean_gateway } = one;
        HostPolicyInterface { name, ipv4_pools, ipv6_pools, clean_gateway }
    };
    interfaces.into_iter().map(one).collect()
}

fn interfaces_out(interfaces: Vec<HostPolicyInterface>) -> Vec<host_policy::HostPolicyInterface> {
    let one = |one: HostPolicyInterface| {
        let HostPolicyInterface { name, ipv4_pools, ipv6_pools, clean_gateway } = one;
        host_policy::HostPolicyInterface { name, ipv4_pools, ipv6_pools, clean_gateway }
    };
    interfaces.into_iter().map(one).collect()
}

fn captures_out(capture: std::collections::BTreeMap<Text, Text>) -> ipam_api::resource::Labels {
    strings(&capture)
}

fn state_in(state: Value) -> Text {
    Text::given(state.to_string())
}

/// Desired state as JSON. Stored text is always JSON; other text would be shown as a string.
fn state_out(state: Text) -> Value {
    serde_json::from_str(&state).unwrap_or_else(|_| Value::String(state.to_string()))
}

fn max_in(max: MaxUnavailable) -> command::MaxUnavailable {
    match max {
        MaxUnavailable::Count(count) => command::MaxUnavailable::Count(count),
        MaxUnavailable::Percent(percent) => command::MaxUnavailable::Percent(percent),
    }
}

fn max_out(max: command::MaxUnavailable) -> MaxUnavailable {
    match max {
        command::MaxUnavailable::Count(count) => MaxUnavailable::Count(count),
        command::MaxUnavailable::Percent(percent) => MaxUnavailable::Percent(percent),
    }
}

impl NamedResource for HostPolicies {
    of_kind!(host_policy: HostPolicy, HostPolicyStatus, host_policies, PutHostPolicy, |one| {
        (&one.name).into()
    });

    fn check(spec: &HostPolicy) -> Result<(), Problem> {
        spec.check()
    }

    fn view(state: &State, row: &Self::Row) -> View<Self> {
        let HostPolicySpec { name, realm, node_selector, .. } = &row.spec;
        let nodes = nodes(state, realm).filter(|node| fits(node_selector, node)).count();
        let holding = endpoints(state, realm, name).count();
        let spec = to_json(row.spec.clone());
        let status = HostPolicyStatus { nodes: nodes as u64, holding: holding as u64 };
        Resource { spec, meta: meta(&row.meta), status }
    }
}

/// True if a selector matches the labels of a node.
pub(super) fn fits(selector: &Selector, node: &Node) -> bool {
    selector.fits(|key| node.spec.metadata.labels.get(key).map(Text::as_str))
}

/// Nodes of a realm, by name.
fn nodes<'a>(state: &'a State, realm: &'a Name) -> impl Iterator<Item = &'a Node> {
    let before = ResourceName::lowest_beginning(&format!("{realm}/"));
    let names = state.names(Kind::Node, Some(&before)).map(|(_, id)| state.nodes.get(id.into()));
    names.map_while(|row| row.filter(|row| row.spec.realm == *realm))
}

/// Key of the endpoint that holds the addresses of a node for a policy.
///
/// # Errors
/// If the name of the policy is not a valid namespace.
pub(super) fn endpoint_of(realm: &Name, policy: &Name, node: &ObjectName) -> Result<EndpointKey, Problem> {
    Ok(EndpointKey {
        realm: realm.clone(),
        kind: EndpointKind::Host,
        namespace: ObjectName::new(policy.as_str())?,
        name: node.clone(),
    })
}

/// Endpoints that hold addresses of a policy, by node.
pub(super) fn endpoints<'a>(
    state: &'a State,
    realm: &Name,
    policy: &Name,
) -> impl Iterator<Item = &'a EndpointKey> + use<'a> {
    let first = endpoint_of(realm, policy, &ObjectName::lower_bound()).ok();
    let all = first.as_ref().map(|first| state.endpoints_after(Some((first, 0.into()))));
    let all: Vec<&EndpointKey> = all
        .into_iter()
        .flatten()
        .map(|(key, _)| key)
        .take_while(|key| first.as_ref().is_some_and(|first| is_of_one_policy(first, key)))
        .collect();
    let mut last: Option<&EndpointKey> = None;
    // One endpoint may have several incarnations.
    all.into_iter().filter(move |key| last.replace(key) != Some(*key))
}

fn is_of_one_policy(one: &EndpointKey, other: &EndpointKey) -> bool {
    (&one.realm, one.kind, &one.namespace) == (&other.realm, other.kind, &other.namespace)
}
