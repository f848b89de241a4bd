//! Addresses of a management cluster: objects that fulfil claims.

use ipam_api::brand::{CLUSTER_API_FINALIZER, CLUSTER_API_GROUP};
use ipam_api::name::ObjectName;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::DynamicObject;
use kube::core::ApiResource;
use serde_json::{Map, Value, json};

use super::claim::ClaimFacts;
use super::json::at;
use super::kind::PoolKey;
use super::metadata::{CLUSTER_NAME, Key, Metadata, key};

/// API group of claims and addresses.
pub(crate) const CONTRACT_GROUP: &str = "ipam.cluster.x-k8s.io";
/// Kind of claims.
pub(crate) const CLAIM: &str = "IPAddressClaim";
/// Kind of addresses.
pub(crate) const ADDRESS: &str = "IPAddress";

/// Spec of an address, which never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AddressSpec {
    pub(crate) address: String,
    pub(crate) prefix: i64,
    pub(crate) gateway: Option<String>,
}

impl AddressSpec {
    /// True if both have the same address, however it is written.
    pub(crate) fn has_address_of(&self, other: &Self) -> bool {
        let parsed = |one: &Self| one.address.parse::<std::net::IpAddr>().ok();
        self.address == other.address || parsed(self).is_some_and(|own| parsed(other) == Some(own))
    }
}

/// Object that fulfils a claim.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AddressFacts {
    pub(crate) metadata: Metadata,
    pub(crate) claim: ObjectName,
    pub(crate) pool: PoolKey,
    pub(crate) spec: AddressSpec,
}

impl AddressFacts {
    /// Key and facts of an address; none if the object belongs to another provider.
    pub(crate) fn of(object: &DynamicObject) -> Option<(Key, Self)> {
        let key = key(&object.metadata)?;
        let field = |pointer: &str| at(&object.data, pointer);
        let pool = PoolKey::referred(field("/spec/poolRef"), &key.0)?;
        let claim = ObjectName::new(field("/spec/claimRef/name").as_str()?).ok()?;
        let text = |pointer: &str| field(pointer).as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let spec = AddressSpec {
            address: text("/spec/address").unwrap_or_default(),
            prefix: field("/spec/prefix").as_i64().unwrap_or_default(),
            gateway: text("/spec/gateway"),
        };
        Some((key, Self { metadata: Metadata::of(&object.metadata), claim, pool, spec }))
    }

    /// True if the object fulfils this claim, by the names of the claim and of its pool.
    pub(crate) fn fulfils(&self, name: &ObjectName, claim: &ClaimFacts) -> bool {
        self.claim == *name && self.pool == claim.pool
    }

    /// Owners that the object should have. Other claims and pools of this provider are removed.
    pub(crate) fn owners(&self, wanted: Vec<OwnerReference>) -> Vec<OwnerReference> {
        let is_ours = |owner: &&OwnerReference| {
            let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
            group == CLUSTER_API_GROUP || group == CONTRACT_GROUP && owner.kind == CLAIM
        };
        let others = self.metadata.owners.iter().filter(|owner| !is_ours(owner)).cloned();
        others.chain(wanted).collect()
    }
}

/// Owners of a claim's address: the claim controls the address, and the pool's deletion waits for it.
pub(crate) fn owners(
    resource: &ApiResource,
    (name, claim): (&ObjectName, &ClaimFacts),
    pool_uid: Option<&str>,
) -> Vec<OwnerReference> {
    let owner = |api_version: &str, kind: &str, name: &ObjectName, uid: &str, is_controller| OwnerReference {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        name: name.as_str().to_owned(),
        uid: uid.to_owned(),
        controller: Some(is_controller),
        block_owner_deletion: Some(true),
    };
    let pool = &claim.pool;
    let of_pool = pool_uid
        .map(|uid| owner(&pool.kind.resource().api_version, pool.kind.name(), &pool.name, uid, false));
    let of_claim = owner(&resource.api_version, CLAIM, name, &claim.metadata.uid, true);
    std::iter::once(of_claim).chain(of_pool).collect()
}

/// Address that fulfils a claim, as the API server creates it.
pub(crate) fn object(
    resource: &ApiResource,
    (namespace, name): &Key,
    claim: &ClaimFacts,
    owners: &[OwnerReference],
    spec: &AddressSpec,
) -> Value {
    let labels: Map<String, Value> =
        claim.cluster.iter().map(|cluster| (CLUSTER_NAME.to_owned(), cluster.as_str().into())).collect();
    let metadata = json!({
        "name": name, "namespace": namespace, "labels": labels, "finalizers": [CLUSTER_API_FINALIZER],
        "ownerReferences": owners,
    });
    let mut fields = Map::new();
    fields.insert("claimRef".to_owned(), json!({"name": name}));
    fields.insert("poolRef".to_owned(), claim.pool.reference());
    fields.insert("address".to_owned(), spec.address.as_str().into());
    fields.insert("prefix".to_owned(), spec.prefix.into());
    fields.extend(spec.gateway.as_deref().map(|gateway| ("gateway".to_owned(), gateway.into())));
    json!({
        "apiVersion": resource.api_version, "kind": ADDRESS, "metadata": metadata, "spec": fields,
    })
}
