//! Clusters of a management cluster.

use kube::api::DynamicObject;

use super::json::at;
use super::metadata::{Key, Metadata, key};

/// Part of a Cluster that concerns its claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClusterFacts {
    /// True if neither claims nor addresses of the Cluster may change.
    pub(crate) is_paused: bool,
}

impl ClusterFacts {
    /// Key and facts of a Cluster.
    pub(crate) fn of(object: &DynamicObject) -> Option<(Key, Self)> {
        let is_paused = *at(&object.data, "/spec/paused") == true || Metadata::of(&object.metadata).is_paused;
        Some((key(&object.metadata)?, Self { is_paused }))
    }
}
