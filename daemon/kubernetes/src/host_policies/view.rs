//! Policies of kubernetes-nmstate as the API server has them.

use ipam_api::brand::NMSTATE_GROUP;
use kube::core::ApiResource;
use kube::runtime::watcher::Event;

use ipam_api::name::ObjectName;

use super::shown::NncpFacts;
use crate::mirror::Mirrored;
use crate::objects::resource;

/// Kind of the objects.
pub(crate) const KIND: &str = "NodeNetworkConfigurationPolicy";
/// Plural of the objects.
pub(crate) const PLURAL: &str = "nodenetworkconfigurationpolicies";

/// View of the objects.
#[derive(Debug, Default)]
pub(crate) struct HostPolicyView {
    pub(crate) objects: Mirrored<NncpFacts>,
    /// True while the API server serves the kind; none before the first discovery.
    pub(crate) is_served: Option<bool>,
    /// True while the API server serves the kind of host policies; none before the first discovery.
    pub(crate) has_policies: Option<bool>,
    /// Number of changes of nodes, objects and host policies that the roll-out depends on.
    pub(crate) version: u64,
    /// Number of changes of nodes.
    pub(crate) nodes_version: u64,
}

impl HostPolicyView {
    /// Applies an event.
    pub(crate) fn event(&mut self, event: Event<Option<(ObjectName, NncpFacts)>>) {
        let is_list = matches!(event, Event::InitDone);
        let effects = self.objects.event(event);
        if is_list || !effects.names.is_empty() {
            self.version += 1;
        }
    }
}

/// Resource of Kubernetes.
pub(crate) fn kind() -> ApiResource {
    resource(NMSTATE_GROUP, KIND, PLURAL)
}
