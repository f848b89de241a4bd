//! Key of an endpoint: its kind and its names.

use serde::{Deserialize, Serialize};

use crate::name::{Name, ObjectName, is_not};

crate::named_enum! {
/// Kind of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum EndpointKind {
    /// A Kubernetes pod.
    Pod = "pod",
    /// A virtual machine.
    Vm = "vm",
    /// A machine of an operator, with or without an orchestrator.
    Host = "host",
    /// A machine of Cluster API.
    Machine = "machine",
    /// A claim for an address by name.
    Claim = "claim",
    /// A container that no orchestrator named.
    Container = "container",
}
}

impl std::str::FromStr for EndpointKind {
    type Err = crate::Problem;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| {
            is_not(text, "a kind of endpoint; the kinds are pod, vm, host, machine, claim, container")
        })
    }
}

/// Key of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EndpointKey {
    /// Realm of the endpoint.
    #[serde(default = "Name::default_name")]
    pub realm: Name,
    /// Kind of the endpoint.
    pub kind: EndpointKind,
    /// Namespace of the endpoint.
    #[serde(default = "ObjectName::default_name")]
    pub namespace: ObjectName,
    /// Name of the endpoint.
    pub name: ObjectName,
}

/// Formats as `kind/name`, with namespace and realm unless they are the default:
/// `pod/prod-eu/web/frontend-7`.
impl std::fmt::Display for EndpointKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let default = crate::brand::DEFAULT;
        write!(f, "{}/", self.kind)?;
        if self.realm.as_str() != default {
            write!(f, "{}/", self.realm)?;
        }
        if self.realm.as_str() != default || self.namespace.as_str() != default {
            write!(f, "{}/", self.namespace)?;
        }
        write!(f, "{}", self.name)
    }
}

/// Parses the form that `Display` writes.
impl std::str::FromStr for EndpointKey {
    type Err = crate::Problem;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<&str> = text.split('/').collect();
        let (kind, realm, namespace, name) = match parts.as_slice() {
            [kind, name] => (kind, crate::brand::DEFAULT, crate::brand::DEFAULT, name),
            [kind, namespace, name] => (kind, crate::brand::DEFAULT, *namespace, name),
            [kind, realm, namespace, name] => (kind, *realm, *namespace, name),
            _ => {
                let rule = "an endpoint; write kind/name, kind/namespace/name or kind/realm/namespace/name, \
                            for example host/db-07";
                return Err(is_not(text, rule));
            }
        };
        Ok(Self {
            kind: kind.parse()?,
            realm: Name::new(realm)?,
            namespace: ObjectName::new(namespace)?,
            name: ObjectName::new(name)?,
        })
    }
}
