//! Object for one node: a policy of kubernetes-nmstate.

use ipam_api::brand::{
    HOST_POLICY_LABEL, HOST_POLICY_NODE, HOST_POLICY_RENDERED, HOST_POLICY_RESET, HOST_POLICY_TEMPLATE,
    HOSTNAME_LABEL, KUBERNETES_MANAGED_BY, NMSTATE_GROUP, PRODUCT, REALM_LABEL,
};
use ipam_api::host_policy::RenderedHostPolicy;
use ipam_api::limits::NMSTATE_NAME_CHARS_MAX;
use ipam_api::name::{Name, ObjectName};
use serde_json::{Map, Value, json};

use super::digest::{digest, short_digest};
use super::policy::Policy;
use super::view::KIND;

/// Name of the object for a node. kubernetes-nmstate uses it as the value of a label, so it is short.
pub(crate) fn object_name(policy: &Name, node: &ObjectName) -> String {
    let name = format!("{policy}.{node}").to_ascii_lowercase();
    if name.len() <= NMSTATE_NAME_CHARS_MAX {
        return name;
    }
    let digest = short_digest(&name);
    let kept: String = name.chars().take(NMSTATE_NAME_CHARS_MAX - digest.len() - 1).collect();
    format!("{}-{digest}", kept.trim_end_matches(['.', '-', '_', ':']))
}

/// Content of an object.
#[derive(Debug)]
pub(crate) struct Content<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) realm: &'a Name,
    pub(crate) node: &'a ObjectName,
    /// Value of the node's label with its host name.
    pub(crate) hostname: &'a str,
    pub(crate) rendered: &'a RenderedHostPolicy,
    /// Latest reset of the policy that was applied to the addresses.
    pub(crate) reset: Option<&'a str>,
}

/// Spec with the parts of the rendered policy that kubernetes-nmstate applies.
fn spec(content: &Content<'_>) -> Value {
    let mut spec = Map::new();
    spec.insert("nodeSelector".to_owned(), json!({HOSTNAME_LABEL: content.hostname}));
    if !content.rendered.capture.is_empty() {
        spec.insert("capture".to_owned(), json!(content.rendered.capture));
    }
    spec.insert("desiredState".to_owned(), content.rendered.desired_state.clone());
    Value::Object(spec)
}

/// Digest of the spec that an object would have.
pub(crate) fn digest_of(content: &Content<'_>) -> String {
    spec_digest(&spec(content))
}

/// Digest of the parts of a spec that are written. Defaults of the API server don't count.
pub(super) fn spec_digest(spec: &Value) -> String {
    digest(
        &["nodeSelector", "capture", "desiredState"].map(|field| spec[field].clone()).into_iter().collect(),
    )
}

/// Object for a node.
pub(crate) fn object(content: &Content<'_>) -> Value {
    let Content { policy, realm, node, reset, .. } = content;
    let spec = spec(content);
    let mut annotations = json!({
        HOST_POLICY_NODE: node, HOST_POLICY_TEMPLATE: policy.template,
        HOST_POLICY_RENDERED: spec_digest(&spec),
    });
    if let (Some(reset), Value::Object(fields)) = (reset, &mut annotations) {
        fields.insert(HOST_POLICY_RESET.to_owned(), (*reset).into());
    }
    json!({
        "apiVersion": format!("{NMSTATE_GROUP}/v1"),
        "kind": KIND,
        "metadata": {
            "name": object_name(&policy.name, node),
            "labels": {
                KUBERNETES_MANAGED_BY: PRODUCT, HOST_POLICY_LABEL: policy.name, REALM_LABEL: realm,
            },
            "annotations": annotations,
        },
        "spec": spec,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_differ() {
        let policy = Name::new("static-ip").unwrap();
        let name = |node: &str| object_name(&policy, &ObjectName::new(node).unwrap());
        assert_eq!(name("node01"), "static-ip.node01");
        let long = |end: &str| name(&format!("{}{end}", "a".repeat(80)));
        assert!(long("1").len() <= NMSTATE_NAME_CHARS_MAX && long("1") != long("2"), "{}", long("1"));
    }
}
