//! Kinds of custom resources.

use std::fmt::Debug;

use ipam_api::Problem;
use ipam_api::name::{Name, ObjectName};
use ipam_api::resource::Condition;
use kube::core::ApiResource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::facts::CustomFacts;
use super::views::CustomViews;
use crate::host_policies::Rollout;
use crate::mirror::Mirrored;
use crate::objects::resource;

/// Kind of custom resources whose objects are applied to the servers.
pub(crate) trait CustomKind: Send + Sync + 'static {
    /// Resource of the servers, with its name and its manager.
    type Spec: Serialize + DeserializeOwned + Clone + Debug + PartialEq + Send + Sync;
    /// Status of the resource.
    type Status: DeserializeOwned + Send + Sync;
    /// Kind of the objects.
    const KIND: &'static str;
    /// Plural of the objects.
    const PLURAL: &'static str;
    /// Plural of the servers' resources.
    const SERVERS_PLURAL: &'static str = Self::PLURAL;
    /// True if the deletion of a resource in use takes effect once it is no longer in use.
    const DRAINS: bool = false;
    /// True if nodes are configured by the resource.
    const ROLLS_OUT: bool = false;

    /// View of the objects.
    fn view(views: &mut CustomViews) -> &mut Mirrored<CustomFacts<Self::Spec>>;
    /// Name of the resource.
    fn name(spec: &Self::Spec) -> &str;
    /// Field `managed_by` of the resource.
    fn manager(spec: &Self::Spec) -> Option<&str>;
    /// Fields of the resource that a spec describes, without its name and its manager.
    ///
    /// # Errors
    /// Problem with a field.
    fn fields(spec: Map<String, Value>, _realm: &Name) -> Result<Map<String, Value>, Problem> {
        Ok(spec)
    }
    /// Adds the fields that the servers add to a spec.
    fn complete(_: &mut Self::Spec, _present: &Self::Spec) {}
    /// True if the resource is deleted once it is no longer in use.
    fn is_terminating(_: &Self::Spec) -> bool {
        false
    }
    /// Part of the status of objects that follows from the status of the resource.
    fn shown(status: &Self::Status) -> Value;
    /// Conditions of the resource.
    fn conditions(_: &Self::Status) -> &[Condition] {
        &[]
    }

    /// Progress of the roll-out of the resource, if it has one.
    fn rollout<'a>(_: &'a CustomViews, _: &ObjectName) -> Option<&'a Rollout> {
        None
    }

    /// Resource of Kubernetes.
    fn resource() -> ApiResource {
        resource(ipam_api::brand::KUBERNETES_GROUP, Self::KIND, Self::PLURAL)
    }
}
