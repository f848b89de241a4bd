//! Part of a policy of kubernetes-nmstate that the watcher keeps.

use ipam_api::brand::{
    HOST_POLICY_LABEL, HOST_POLICY_NODE, HOST_POLICY_RENDERED, HOST_POLICY_RESET, HOST_POLICY_TEMPLATE,
    KUBERNETES_MANAGED_BY, PRODUCT, REALM_LABEL,
};
use ipam_api::limits::{KUBERNETES_CUSTOM_MESSAGE_CHARS_MAX, KUBERNETES_RESET_CHARS_MAX};
use ipam_api::name::{Name, ObjectName};
use serde_json::Value;

use super::object::{object_name, spec_digest};
use crate::custom::CustomObject;

/// State that kubernetes-nmstate reports.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NncpState {
    /// The node is configured.
    Available,
    /// The node refused the configuration, and has its former one.
    Degraded(String),
    /// The outcome is not known.
    Progressing,
}

/// Host policy and node of an object of this realm.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Owner {
    pub(crate) policy: Name,
    pub(crate) node: ObjectName,
    /// Digest of the template. `is_intact` is true if the spec has not changed since the object was written.
    template: String,
    is_intact: bool,
    /// Latest reset of the policy that was applied to the addresses.
    observed_reset: Option<String>,
    /// Digest of the spec when it was written.
    pub(crate) rendered: String,
}

/// Part of an object that the watcher keeps.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NncpFacts {
    pub(crate) uid: String,
    /// Owner; none if the object is not one of this realm.
    pub(crate) owner: Option<Owner>,
    /// Requested reset of this node.
    pub(crate) reset: Option<String>,
    pub(crate) state: NncpState,
    pub(crate) is_deleting: bool,
}

impl NncpFacts {
    /// Name and facts of an object.
    pub(crate) fn of(object: CustomObject, realm: &Name) -> Option<(ObjectName, Self)> {
        let CustomObject { metadata, spec, status, .. } = object;
        let name = ObjectName::new(&metadata.name).ok()?;
        let annotation = |name: &str| {
            let value = metadata.annotation(name)?;
            Some(value.chars().take(KUBERNETES_RESET_CHARS_MAX).collect::<String>())
        };
        let label = |name: &str| metadata.labels.0.get(name).map(String::as_str);
        let is_ours =
            label(KUBERNETES_MANAGED_BY) == Some(PRODUCT) && label(REALM_LABEL) == Some(realm.as_str());
        let owner = || {
            let policy = Name::new(label(HOST_POLICY_LABEL).filter(|_| is_ours)?).ok()?;
            let node = ObjectName::new(metadata.annotation(HOST_POLICY_NODE)?).ok()?;
            // A copy of the object under another name has the same labels.
            if object_name(&policy, &node) != name.as_str() {
                return None;
            }
            let rendered = annotation(HOST_POLICY_RENDERED).unwrap_or_default();
            Some(Owner {
                policy,
                node,
                template: annotation(HOST_POLICY_TEMPLATE).unwrap_or_default(),
                is_intact: rendered == spec_digest(&spec),
                observed_reset: annotation(HOST_POLICY_RESET),
                rendered,
            })
        };
        let facts = Self {
            owner: owner(),
            reset: metadata.reset(),
            state: state(&status),
            is_deleting: metadata.deletion_timestamp.is_some(),
            uid: metadata.uid.clone(),
        };
        Some((name, facts))
    }

    /// True if the content of the object matches a template and a reset.
    pub(super) fn is_current(&self, template: &str, reset: Option<&str>) -> bool {
        self.owner.as_ref().is_some_and(|owner| {
            owner.is_intact
                && owner.template == template
                && (reset.is_none() || owner.observed_reset.as_deref() == reset)
        })
    }

    /// True if a reset of the policy was not yet applied to the addresses of the node.
    pub(crate) fn lacks_reset(&self, reset: Option<&str>) -> bool {
        let observed = self.owner.as_ref().and_then(|owner| owner.observed_reset.as_deref());
        reset.is_some() && observed != reset
    }
}

fn state(status: &Value) -> NncpState {
    let conditions = || status["conditions"].as_array().into_iter().flatten();
    let find = |kind: &str| conditions().find(|one| one["type"] == kind && one["status"] == "True");
    if let Some(degraded) = find("Degraded") {
        let text = ["message", "reason"].into_iter().filter_map(|field| degraded[field].as_str());
        let text = text.into_iter().find(|text| !text.is_empty()).unwrap_or_default();
        return NncpState::Degraded(text.chars().take(KUBERNETES_CUSTOM_MESSAGE_CHARS_MAX / 4).collect());
    }
    if find("Available").is_some() { NncpState::Available } else { NncpState::Progressing }
}
