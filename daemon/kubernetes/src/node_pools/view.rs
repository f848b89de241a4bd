//! Objects as Kubernetes has them.

use ipam_api::brand::KUBERNETES_GROUP;
use kube::core::ApiResource;

use super::facts::PoolFacts;
use crate::mirror::Mirrored;
use crate::objects::resource;

/// Kind of the objects.
pub(crate) const KIND: &str = "NodeIPPool";
/// Plural of the objects.
pub(crate) const PLURAL: &str = "nodeippools";

/// View of the objects.
pub(crate) type NodePoolView = Mirrored<PoolFacts>;

/// Resource of Kubernetes.
pub(crate) fn kind() -> ApiResource {
    resource(KUBERNETES_GROUP, KIND, PLURAL)
}
