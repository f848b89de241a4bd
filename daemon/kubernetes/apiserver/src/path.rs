//! Paths of the API: collections, objects and subresources.

use std::sync::Arc;

use serde_json::Value;

use crate::custom::Custom;
use crate::resources::{DEFINITIONS, Registry, Resource, Served};

/// Place that a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) resource: Resource,
    /// Version of the definition of a custom resource.
    pub(crate) custom: Option<Arc<Custom>>,
    pub(crate) has_status: bool,
    /// Namespace; none for cluster-scoped resources, and for lists of all namespaces.
    pub(crate) namespace: Option<String>,
    /// Name; none for a collection.
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
}

impl Place {
    /// Parses a path; none if no resource is there.
    pub(crate) fn parse(path: &str, registry: &Registry) -> Option<Self> {
        let mut segments = path.trim_matches('/').split('/').map(decoded);
        let group = match segments.next()?.as_str() {
            "api" => String::new(),
            "apis" => segments.next()?,
            _ => return None,
        };
        let version = segments.next()?;
        let rest: Vec<String> = segments.collect();
        let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
        let (namespace, rest) = match rest.as_slice() {
            // This path is the status of a namespace, and not a collection in the namespace.
            ["namespaces", _, "status"] => (None, rest.as_slice()),
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some((*namespace).to_owned()), rest),
            all => (None, all),
        };
        let (plural, name, subresource) = match rest {
            [plural] => (plural, None, None),
            [plural, name] => (plural, Some(name), None),
            [plural, name, subresource] => (plural, Some(name), Some(subresource)),
            _ => return None,
        };
        let served = registry.find(&group, &version, plural)?;
        let has_status = served.has("status");
        let has_subresource = subresource.is_none_or(|one| served.has(one));
        let Served { resource, custom } = served.clone();
        let has_place = name.is_none() || resource.is_namespaced == namespace.is_some();
        let own = |text: Option<&&str>| text.map(|text| (*text).to_owned());
        (has_place && has_subresource).then(|| Self {
            resource,
            custom,
            has_status,
            namespace,
            name: own(name),
            subresource: own(subresource),
        })
    }

    /// Returns true for this built-in resource.
    pub(crate) fn is(&self, group: &str, plural: &str) -> bool {
        self.resource.group == group && self.resource.plural == plural
    }

    /// Stored object as this place shows it.
    pub(crate) fn shown(&self, object: &Value) -> Value {
        match &self.custom {
            Some(custom) => custom.shown(object),
            None => object.clone(),
        }
    }

    pub(crate) fn is_scale(&self) -> bool {
        self.subresource.as_deref() == Some("scale")
    }

    pub(crate) fn is_definitions(&self) -> bool {
        self.is(DEFINITIONS.0, DEFINITIONS.1)
    }

    /// Plural with the group, as messages name a resource.
    pub(crate) fn qualified(&self) -> String {
        match self.resource.group.as_str() {
            "" => self.resource.plural.clone(),
            group => format!("{}.{group}", self.resource.plural),
        }
    }
}

/// Decodes percent-encoded characters.
pub(crate) fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digits = (byte == b'%').then(|| rest.clone().take(2).collect::<Vec<u8>>());
        let code = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok());
        match code {
            Some(code) => {
                rest.next();
                rest.next();
                bytes.push(code);
            }
            None => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Parameters of a query.
pub(crate) fn parameter(query: &str, name: &str) -> Option<String> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.into_iter().find(|(key, _)| *key == name).map(|(_, value)| decoded(&value.replace('+', " ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::Registry;

    #[test]
    fn paths_name_collections_objects_and_subresources() {
        for (path, expected) in [
            ("/api/v1/pods", Some("pods - - -")),
            ("/api/v1/namespaces/shop/pods", Some("pods shop - -")),
            ("/api/v1/namespaces/shop/pods/web%2D0", Some("pods shop web-0 -")),
            ("/api/v1/namespaces/shop/pods/web-0/status", Some("pods shop web-0 status")),
            ("/apis/apps/v1/namespaces/shop/replicasets/web", Some("replicasets shop web -")),
            ("/api/v1/namespaces/shop", Some("namespaces - shop -")),
            ("/api/v1/namespaces/shop/status", Some("namespaces - shop status")),
            ("/api/v1/nodes/n1", Some("nodes - n1 -")),
            ("/api/v1/pods/web-0", None),
            ("/api/v1/namespaces/shop/configmaps/web/status", None),
            ("/api/v1/widgets", None),
            ("/apis/apps/v1/pods", None),
            ("/", None),
        ] {
            let found = Place::parse(path, &Registry::built_in()).map(|place| {
                let part = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
                let Place { resource, namespace, name, subresource, .. } = place;
                format!("{} {} {} {}", resource.plural, part(namespace), part(name), part(subresource))
            });
            assert_eq!(found.as_deref(), expected, "{path}");
        }
        assert_eq!(
            parameter("watch=1&fieldSelector=spec.nodeName%3Dn1", "fieldSelector").unwrap(),
            "spec.nodeName=n1"
        );
    }
}
