//! Namespaces: their labels and their default pools.

use ipam_api::annotations::{DefaultPools, default_pools, is_of_namespaces};
use ipam_api::limits::KUBERNETES_ANNOTATION_BYTES_MAX;
use ipam_api::name::ObjectName;
use ipam_api::resource::Labels;
use ipam_api::{Code, Problem};
use serde::Deserialize;

use super::object::Object;

/// Namespace with the fields that are mirrored.
pub(crate) type Namespaces = Object<Nothing, Nothing>;

#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Nothing {}

/// Part of a namespace that the watcher keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamespaceFacts {
    pub(crate) labels: Labels,
    /// Default pools, or the code of the problem with their annotations.
    pub(crate) pools: Result<DefaultPools, Code>,
}

impl Namespaces {
    /// Name and facts of the namespace.
    pub(crate) fn facts(self) -> Option<(ObjectName, NamespaceFacts)> {
        let name = ObjectName::new(&self.metadata.name).ok()?;
        let pools = self.pools().map_err(|problem| problem.code);
        Some((name, NamespaceFacts { labels: self.metadata.labels.0, pools }))
    }

    fn pools(&self) -> Result<DefaultPools, Problem> {
        let own = self.metadata.annotations.iter().flatten().filter(|(name, _)| is_of_namespaces(name));
        if own.map(|(_, text)| text.len()).max() > Some(KUBERNETES_ANNOTATION_BYTES_MAX) {
            return Err(Problem::new(Code::LimitExceeded, "an annotation is too long"));
        }
        default_pools(|name| self.metadata.annotation(name))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pools(annotations: serde_json::Value) -> Result<String, Code> {
        let namespace = json!({"metadata": {"name": "shop", "annotations": annotations}});
        let (_, facts) = serde_json::from_value::<Namespaces>(namespace).unwrap().facts().unwrap();
        facts.pools.map(|pools| format!("{:?} {:?}", pools.ipv4, pools.ipv6))
    }

    #[test]
    fn default_pools_come_from_annotations() {
        assert_eq!(pools(json!(null)).unwrap(), "[] []");
        assert_eq!(
            pools(json!({"ipam.spidernet.io/default-ipv4-ippool": "[\"a\"]", "other": "x".repeat(200_000)})),
            Ok("[\"a\"] []".to_owned())
        );
        assert_eq!(pools(json!({"ipam.spidernet.io/defaultv6ippool": "x"})), Err(Code::InvalidField));
        let long = "x".repeat(KUBERNETES_ANNOTATION_BYTES_MAX + 1);
        assert_eq!(pools(json!({"ipam.spidernet.io/defaultv6ippool": long})), Err(Code::LimitExceeded));
    }
}
