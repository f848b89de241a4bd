//! Kinds of pools, and references to pools.

use std::fmt;

use ipam_api::brand::CLUSTER_API_GROUP;
use ipam_api::name::ObjectName;
use kube::core::ApiResource;
use serde_json::{Value, json};

use crate::objects::resource;

/// Kind of pools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PoolKind {
    /// Addresses for one namespace.
    Ip,
    /// Addresses for all namespaces.
    GlobalIp,
    /// Prefixes for one namespace.
    Prefix,
    /// Prefixes for all namespaces.
    GlobalPrefix,
}

impl PoolKind {
    pub(crate) const ALL: [Self; 4] = [Self::Ip, Self::GlobalIp, Self::Prefix, Self::GlobalPrefix];

    /// Kind of the objects.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ip => "IPPool",
            Self::GlobalIp => "GlobalIPPool",
            Self::Prefix => "PrefixPool",
            Self::GlobalPrefix => "GlobalPrefixPool",
        }
    }

    /// Plural of the objects.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            Self::Ip => "ippools",
            Self::GlobalIp => "globalippools",
            Self::Prefix => "prefixpools",
            Self::GlobalPrefix => "globalprefixpools",
        }
    }

    /// True if claims of all namespaces may name a pool of this kind.
    pub(crate) fn is_global(self) -> bool {
        matches!(self, Self::GlobalIp | Self::GlobalPrefix)
    }

    /// True if the pool delegates prefixes.
    pub(crate) fn is_prefix(self) -> bool {
        matches!(self, Self::Prefix | Self::GlobalPrefix)
    }

    /// Resource of Kubernetes.
    pub(crate) fn resource(self) -> ApiResource {
        resource(CLUSTER_API_GROUP, self.name(), self.plural())
    }

    fn of(group: &str, kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| group == CLUSTER_API_GROUP && one.name() == kind)
    }
}

/// Key of a pool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PoolKey {
    pub(crate) kind: PoolKind,
    /// Namespace; none for global kinds.
    pub(crate) namespace: Option<ObjectName>,
    pub(crate) name: ObjectName,
}

impl PoolKey {
    /// Pool that an object of a namespace refers to; none if the pool belongs to another provider.
    pub(crate) fn referred(reference: &Value, namespace: &ObjectName) -> Option<Self> {
        let text = |field: &str| reference[field].as_str().unwrap_or_default();
        let kind = PoolKind::of(text("apiGroup"), text("kind"))?;
        let name = ObjectName::new(text("name")).ok()?;
        Some(Self { kind, namespace: (!kind.is_global()).then(|| namespace.clone()), name })
    }

    /// Reference of an object in the pool's namespace.
    pub(crate) fn reference(&self) -> Value {
        json!({"apiGroup": CLUSTER_API_GROUP, "kind": self.kind.name(), "name": self.name})
    }
}

/// `IPPool shop/web`, or `GlobalIPPool web`.
impl fmt::Display for PoolKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind.name())?;
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        write!(f, "{}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_to_another_provider_is_no_pool() {
        let shop = ObjectName::new("shop").unwrap();
        let of = |group: &str, kind: &str| {
            let reference = json!({"apiGroup": group, "kind": kind, "name": "web"});
            PoolKey::referred(&reference, &shop).map(|pool| pool.to_string())
        };
        assert_eq!(of(CLUSTER_API_GROUP, "IPPool").as_deref(), Some("IPPool shop/web"));
        assert_eq!(of(CLUSTER_API_GROUP, "GlobalPrefixPool").as_deref(), Some("GlobalPrefixPool web"));
        for (group, kind) in [
            (CLUSTER_API_GROUP, "InClusterIPPool"),
            ("ipam.cluster.x-k8s.io", "IPPool"),
            ("", "IPPool"),
            (CLUSTER_API_GROUP, ""),
        ] {
            assert_eq!(of(group, kind), None, "{group}/{kind}");
        }
        assert_eq!(PoolKey::referred(&json!({"kind": "IPPool", "name": "web"}), &shop), None);
    }
}
