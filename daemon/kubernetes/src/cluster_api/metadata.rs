//! Metadata of objects, as far as the contract refers to them.

use ipam_api::brand::CLUSTER_API_FINALIZER;
use ipam_api::name::ObjectName;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

/// Annotation that pauses an object.
const PAUSED: &str = "cluster.x-k8s.io/paused";
/// Label with the Cluster of an object.
pub(crate) const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
/// Label by which several providers of one kind divide objects.
pub(crate) const WATCH_FILTER: &str = "cluster.x-k8s.io/watch-filter";
/// Finalizers by which the garbage collector waits for dependents, or orphans them.
const OF_GARBAGE_COLLECTOR: [&str; 2] = ["foregroundDeletion", "orphan"];

/// Key of an object in a namespace.
pub(crate) type Key = (ObjectName, ObjectName);

/// Part of the metadata of an object.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Metadata {
    pub(crate) uid: String,
    /// Resource version.
    pub(crate) version: String,
    pub(crate) generation: i64,
    pub(crate) is_paused: bool,
    /// True once the object has a deletion timestamp.
    pub(crate) is_ending: bool,
    pub(crate) finalizers: Vec<String>,
    pub(crate) owners: Vec<OwnerReference>,
}

impl Metadata {
    pub(crate) fn of(meta: &ObjectMeta) -> Self {
        Self {
            uid: meta.uid.clone().unwrap_or_default(),
            version: meta.resource_version.clone().unwrap_or_default(),
            generation: meta.generation.unwrap_or_default(),
            is_paused: meta.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(PAUSED)),
            is_ending: meta.deletion_timestamp.is_some(),
            finalizers: meta.finalizers.clone().unwrap_or_default(),
            owners: meta.owner_references.clone().unwrap_or_default(),
        }
    }

    /// True if the object has the provider's finalizer.
    pub(crate) fn is_held(&self) -> bool {
        self.finalizers.iter().any(|one| one == CLUSTER_API_FINALIZER)
    }

    /// True if a finalizer of another controller holds the object: a consumer may still use the address.
    pub(crate) fn is_held_by_another(&self) -> bool {
        let is_own = |one: &str| one == CLUSTER_API_FINALIZER || OF_GARBAGE_COLLECTOR.contains(&one);
        self.finalizers.iter().any(|one| !is_own(one))
    }

    /// Finalizers including that of the provider.
    pub(crate) fn with_finalizer(&self) -> Vec<String> {
        let mut all = self.finalizers.clone();
        if !self.is_held() {
            all.push(CLUSTER_API_FINALIZER.to_owned());
        }
        all
    }

    /// Finalizers except that of the provider.
    pub(crate) fn without_finalizer(&self) -> Vec<String> {
        self.finalizers.iter().filter(|one| *one != CLUSTER_API_FINALIZER).cloned().collect()
    }
}

/// Key of an object in a namespace; none for a name that the servers can't accept.
pub(crate) fn key(meta: &ObjectMeta) -> Option<Key> {
    let name = |text: &Option<String>| ObjectName::new(text.as_deref().unwrap_or_default()).ok();
    Some((name(&meta.namespace)?, name(&meta.name)?))
}

/// Label of an object.
pub(crate) fn label<'a>(meta: &'a ObjectMeta, name: &str) -> Option<&'a str> {
    meta.labels.as_ref()?.get(name).map(String::as_str)
}

/// True for an object that a provider with this filter serves.
pub(crate) fn is_selected(meta: &ObjectMeta, filter: Option<&str>) -> bool {
    filter.is_none_or(|filter| label(meta, WATCH_FILTER) == Some(filter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_finalizers_of_the_garbage_collector_are_of_no_consumer() {
        let held = |finalizers: &[&str]| {
            let finalizers = finalizers.iter().map(|one| (*one).to_owned()).collect();
            let metadata = Metadata { finalizers, ..Metadata::default() };
            (metadata.is_held(), metadata.is_held_by_another())
        };
        assert_eq!(held(&[]), (false, false));
        assert_eq!(held(&[CLUSTER_API_FINALIZER, "foregroundDeletion", "orphan"]), (true, false));
        assert_eq!(held(&["infra.example/machine"]), (false, true));
    }

    #[test]
    fn the_own_finalizer_is_added_once_and_removed_alone() {
        let mut metadata = Metadata { finalizers: vec!["a".to_owned()], ..Metadata::default() };
        for _ in 0..2 {
            metadata.finalizers = metadata.with_finalizer();
        }
        assert_eq!(metadata.finalizers, ["a", CLUSTER_API_FINALIZER]);
        assert_eq!(metadata.without_finalizer(), ["a"]);
    }
}
