//! Host policies.

use ipam_api::host_policy::{HostPolicy, HostPolicyStatus};
use ipam_api::name::{Name, ObjectName};
use ipam_api::{Code, Problem};
use serde_json::{Map, Value, json};

use super::facts::CustomFacts;
use super::kind::CustomKind;
use super::views::CustomViews;
use crate::host_policies::Rollout;
use crate::mirror::Mirrored;

/// Fields of objects as those of the resource are named.
const FIELDS: [(&str, &str); 3] = [
    ("nodeSelector", "node_selector"),
    ("desiredState", "desired_state"),
    ("maxUnavailable", "max_unavailable"),
];
/// Fields of interfaces in the same way.
const INTERFACE_FIELDS: [(&str, &str); 3] =
    [("ipv4Pools", "ipv4_pools"), ("ipv6Pools", "ipv6_pools"), ("cleanGateway", "clean_gateway")];

/// Host policies.
#[derive(Debug)]
pub(crate) struct HostPolicies;

impl CustomKind for HostPolicies {
    type Spec = HostPolicy;
    type Status = HostPolicyStatus;
    const KIND: &'static str = "HostPolicy";
    const PLURAL: &'static str = "hostpolicies";
    const SERVERS_PLURAL: &'static str = "host-policies";
    const ROLLS_OUT: bool = true;

    fn view(views: &mut CustomViews) -> &mut Mirrored<CustomFacts<HostPolicy>> {
        &mut views.host_policies
    }

    fn name(spec: &HostPolicy) -> &str {
        spec.name.as_str()
    }

    fn manager(spec: &HostPolicy) -> Option<&str> {
        spec.managed_by.as_deref()
    }

    /// The fields have the names of the proposal for kubernetes-nmstate, and the selector is a map of labels.
    fn fields(spec: Map<String, Value>, realm: &Name) -> Result<Map<String, Value>, Problem> {
        let mut fields = renamed(spec, &FIELDS);
        if let Some(selector) = fields.remove("node_selector") {
            fields.insert("node_selector".to_owned(), labels(selector)?);
        }
        if let Some(Value::Array(interfaces)) = fields.get_mut("interfaces") {
            for interface in interfaces {
                if let Value::Object(own) = interface {
                    *own = renamed(std::mem::take(own), &INTERFACE_FIELDS);
                }
            }
        }
        fields.insert("realm".to_owned(), realm.as_str().into());
        Ok(fields)
    }

    fn shown(status: &HostPolicyStatus) -> Value {
        json!({"holding": status.holding})
    }

    fn rollout<'a>(views: &'a CustomViews, name: &ObjectName) -> Option<&'a Rollout> {
        views.rollouts.get(name)
    }
}

fn renamed(fields: Map<String, Value>, names: &[(&str, &str)]) -> Map<String, Value> {
    let own = |name: String| {
        let found = names.iter().find(|(theirs, _)| *theirs == name);
        found.map_or(name, |(_, ours)| (*ours).to_owned())
    };
    fields.into_iter().map(|(name, value)| (own(name), value)).collect()
}

/// Selector of a map of labels.
fn labels(selector: Value) -> Result<Value, Problem> {
    let Value::Object(labels) = selector else { return Ok(selector) };
    let mut parts = Vec::new();
    for (key, value) in labels {
        let Value::String(value) = value else {
            let why = "the value of a label is no text";
            return Err(Problem::new(Code::InvalidField, why).at("/nodeSelector"));
        };
        ipam_api::selector::check_label(&key, &value)
            .map_err(|problem| Problem::new(Code::InvalidField, problem.detail).at("/nodeSelector"))?;
        parts.push(format!("{key}={value}"));
    }
    Ok(parts.join(",").into())
}

#[cfg(test)]
mod tests {
    use super::super::facts::CustomObject;
    use super::*;

    fn read(spec: &Value) -> Result<HostPolicy, Problem> {
        let object = json!({"metadata": {"name": "static-ip", "uid": "u", "generation": 1,
                                         "annotations": {"nmstate.io/reset-ippool": "traffic-1"}},
                            "spec": spec});
        let object: CustomObject = serde_json::from_value(object).unwrap();
        let (_, facts) = object.custom::<HostPolicies>(&Name::new("prod").unwrap(), "m").unwrap();
        assert_eq!(facts.reset.as_deref(), Some("traffic-1"));
        facts.spec
    }

    #[test]
    fn the_spec_has_the_names_of_the_proposal() {
        let policy = read(&json!({
            "nodeSelector": {"node-role.kubernetes.io/worker": "", "zone": "a"},
            "maxUnavailable": 3,
            "interfaces": [{"name": "eth1", "ipv4Pools": ["traffic-1"], "cleanGateway": true}],
            "capture": {"one": "ippool.traffic-1.allocate"},
            "desiredState": {"interfaces": [{"name": "eth1", "nodeSelector": 1}]},
        }))
        .unwrap();
        assert_eq!(policy.node_selector.to_string(), "node-role.kubernetes.io/worker=,zone=a");
        assert_eq!((policy.realm.as_str(), policy.interfaces[0].clean_gateway), ("prod", true));
        assert_eq!(policy.max_unavailable.of(9), 3);
        assert_eq!(policy.desired_state["interfaces"][0]["nodeSelector"], 1, "templates stay as they are");
    }

    #[test]
    fn unreadable_specs_are_refused() {
        for spec in [
            json!({"nodeSelector": {"a": 1}}),
            json!({"nodeSelector": {"a b": "c"}}),
            json!({"interfaces": [{"name": "eth1", "pools": []}]}),
            json!({"maxUnavailable": "x"}),
            json!({"desired": {}}),
        ] {
            assert!(read(&spec).is_err(), "{spec}");
        }
    }
}
