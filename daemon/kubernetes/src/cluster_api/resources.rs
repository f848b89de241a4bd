//! Resources of ipamd for pools of a management cluster.

use ipam_api::brand::{DEFAULT, FOREIGN_NAME};
use ipam_api::limits::COOLING_MS_DEFAULT;
use ipam_api::name::{Name, ObjectName};
use ipam_api::resource::Labels;
use ipnet::IpNet;
use serde_json::{Value, json};

use super::kind::PoolKey;
use super::metadata::Key;
use super::plan::Plan;

/// Bytes of a value of an annotation.
const ANNOTATION_BYTES_MAX: usize = 253;

/// Names that identify a pool's resources in ipamd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Names {
    /// Original name of the pool, stored in an annotation of its resource.
    pub(crate) foreign: String,
    /// Name of the pool.
    pub(crate) pool: Name,
}

/// Names of the resources of a pool.
pub(crate) fn names(realm: &Name, key: &PoolKey) -> Names {
    let kind = key.kind.name().to_lowercase();
    let namespace = key.namespace.as_ref().map_or("", |namespace| namespace.as_str());
    // No name contains a colon, so the text is unambiguous.
    let foreign = format!("{kind}:{realm}:{namespace}:{}", key.name);
    Names { pool: Name::from_foreign_text(&foreign), foreign }
}

/// Annotations with an original name. The second annotation has the part that exceeds the limit of a value.
pub(crate) fn foreign_name(foreign: &str) -> Labels {
    let (first, rest) = foreign.split_at_checked(ANNOTATION_BYTES_MAX).unwrap_or((foreign, ""));
    let rest = Some(rest).filter(|rest| !rest.is_empty()).map(|rest| (format!("{FOREIGN_NAME}-rest"), rest));
    let all = std::iter::once((FOREIGN_NAME.to_owned(), first)).chain(rest);
    all.map(|(key, text)| (key, text.to_owned())).collect()
}

/// Network of a namespace that has one of its own.
pub(crate) fn network_of_namespace(realm: &Name, namespace: &str) -> (Name, String) {
    let foreign = format!("namespace:{realm}:{namespace}");
    (Name::from_foreign_text(&foreign), foreign)
}

/// Owner of the prefix of a claim; none if the name is too long. A namespace contains no dot, so the owner is
/// unambiguous.
pub(crate) fn owner_of_prefix((namespace, name): &Key) -> Option<ObjectName> {
    ObjectName::new(&format!("{namespace}.{name}")).ok()
}

/// Claim of the owner of a prefix.
pub(crate) fn claim_of_prefix(owner: &str) -> Option<Key> {
    let (namespace, name) = owner.split_once('.')?;
    Some((ObjectName::new(namespace).ok()?, ObjectName::new(name).ok()?))
}

/// Name of the subnet that is created for a CIDR.
pub(crate) fn subnet_name(network: &Name, cidr: IpNet) -> (Name, String) {
    let cidr = cidr.to_string();
    let foreign = if network.as_str() == DEFAULT { cidr } else { format!("{network}:{cidr}") };
    (Name::from_foreign_text(&foreign), foreign)
}

/// Subnet that is created for a pool.
pub(crate) fn subnet(name: &Name, foreign: &str, network: &Name, cidr: IpNet, manager: &str) -> Value {
    json!({
        "name": name, "network": network, "cidr": cidr, "managed_by": manager,
        "annotations": {FOREIGN_NAME: foreign},
    })
}

/// Network that is created for a namespace.
pub(crate) fn network(name: &Name, foreign: &str, manager: &str) -> Value {
    json!({"name": name, "managed_by": manager, "annotations": {FOREIGN_NAME: foreign}})
}

/// Pool for an object. Only endpoints of its realm and namespace may use it.
pub(crate) fn pool(
    names: &Names,
    key: &PoolKey,
    (realm, manager): (&Name, &str),
    subnet: &Name,
    plan: &Plan,
) -> Value {
    // Prefixes have no namespace in ipamd; the provider checks that of the claim.
    let namespaces: Vec<&ObjectName> = key.namespace.iter().filter(|_| !key.kind.is_prefix()).collect();
    json!({
        "name": names.pool, "subnet": subnet, "ranges": plan.ranges, "exclude": plan.exclude,
        "strategy": "sequential", "allow_edges": true,
        "cooling_ms": plan.cooling_ms.unwrap_or(COOLING_MS_DEFAULT),
        "strict_cooling": plan.cooling_ms.is_some(),
        "realms": [realm], "namespaces": namespaces, "managed_by": manager,
        "description": format!("{key} of Cluster API"),
        "annotations": foreign_name(&names.foreign),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster_api::kind::PoolKind;

    #[test]
    fn pools_of_different_keys_have_different_names() {
        let key = |kind, namespace: Option<&str>, name: &str| PoolKey {
            kind,
            namespace: namespace.map(|text| ObjectName::new(text).unwrap()),
            name: ObjectName::new(name).unwrap(),
        };
        let realm = Name::new("fleet").unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for key in [
            key(PoolKind::Ip, Some("a"), "b-c"),
            key(PoolKind::Ip, Some("a-b"), "c"),
            key(PoolKind::GlobalIp, None, "b-c"),
            key(PoolKind::Prefix, Some("a"), "b-c"),
        ] {
            assert!(seen.insert(names(&realm, &key).pool), "{key}");
        }
        let long = key(PoolKind::GlobalPrefix, None, &"n".repeat(253));
        let annotations = foreign_name(&names(&realm, &long).foreign);
        assert!(annotations.values().all(|text| text.len() <= 253));
        let texts: Vec<String> = annotations.into_values().collect();
        assert_eq!(texts.concat(), names(&realm, &long).foreign);
        assert!(names(&realm, &long).pool.as_str().starts_with("globalprefixpool-fleet--nnn"));
    }

    #[test]
    fn a_subnet_has_the_name_of_its_cidr() {
        let cidr: IpNet = "10.0.0.0/24".parse().unwrap();
        let of = |network: &str| subnet_name(&Name::new(network).unwrap(), cidr).0.to_string();
        assert!(of("default").starts_with("10.0.0.0-24-"), "{}", of("default"));
        assert!(of("blue").starts_with("blue-10.0.0.0-24-"));
    }
}
