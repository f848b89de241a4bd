//! Pools of a management cluster.

use ipam_api::cluster_api::{IpPoolSpec, PoolReference, PrefixPoolSpec};
use ipam_api::limits::{KUBERNETES_CUSTOM_STATUS_BYTES_MAX, KUBERNETES_REQUEST_BYTES_MAX};
use ipam_api::name::{Name, ObjectName};
use ipam_api::{Code, Problem, strict};
use kube::api::DynamicObject;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::json::take;
use super::kind::{PoolKey, PoolKind};
use super::metadata::{Metadata, is_selected};
use crate::custom::length;

/// Pool of a management cluster.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PoolFacts {
    pub(crate) metadata: Metadata,
    /// Spec, or the problem with it.
    pub(crate) spec: Result<PoolSpec, Problem>,
    /// Present status; null if it is too long to compare.
    pub(crate) status: Value,
}

/// Spec of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PoolSpec {
    Addresses(IpPoolSpec),
    Prefixes(PrefixPoolSpec),
}

impl PoolSpec {
    /// Existing pool of ipamd, if the spec names one.
    pub(crate) fn reference(&self) -> Option<&PoolReference> {
        match self {
            Self::Addresses(spec) => spec.pool_ref.as_ref(),
            Self::Prefixes(spec) => spec.pool_ref.as_ref(),
        }
    }

    /// Network that the spec names.
    pub(crate) fn network(&self) -> Option<&Name> {
        match self {
            Self::Addresses(spec) => spec.network.as_ref(),
            Self::Prefixes(spec) => spec.network.as_ref(),
        }
    }

    /// Router that is passed on with each address.
    pub(crate) fn gateway(&self) -> Option<&str> {
        let gateway = match self {
            Self::Addresses(spec) => &spec.gateway,
            Self::Prefixes(spec) => &spec.gateway,
        };
        gateway.as_deref().filter(|text| !text.is_empty())
    }
}

impl PoolFacts {
    /// Key and facts of a pool; none if another provider serves it.
    pub(crate) fn of(kind: PoolKind, object: DynamicObject, filter: Option<&str>) -> Option<(PoolKey, Self)> {
        let DynamicObject { metadata: meta, mut data, .. } = object;
        if !is_selected(&meta, filter) {
            return None;
        }
        let name = |text: &Option<String>| ObjectName::new(text.as_deref().unwrap_or_default()).ok();
        let namespace = if kind.is_global() { None } else { Some(name(&meta.namespace)?) };
        let key = PoolKey { kind, namespace, name: name(&meta.name)? };
        let (spec, status) = (take(&mut data, "spec"), take(&mut data, "status"));
        let is_short = length(&status) <= KUBERNETES_CUSTOM_STATUS_BYTES_MAX;
        let facts = Self {
            metadata: Metadata::of(&meta),
            spec: match kind.is_prefix() {
                true => read(spec).map(PoolSpec::Prefixes),
                false => read(spec).map(PoolSpec::Addresses),
            },
            status: if is_short { status } else { Value::Null },
        };
        Some((key, facts))
    }

    /// Uid by which the pool owns addresses; none for a pool in deletion.
    pub(crate) fn owner_uid(&self) -> Option<&str> {
        (!self.metadata.is_ending).then_some(self.metadata.uid.as_str())
    }

    /// True if the status shows that the spec was applied once.
    pub(crate) fn was_applied(&self) -> bool {
        self.status.get("pool").is_some_and(Value::is_string)
    }

    /// True if the objects differ in more than their versions and statuses.
    pub(crate) fn differs_from(&self, other: &Self) -> bool {
        let facts = |one: &Self| {
            (
                one.metadata.uid.clone(),
                one.metadata.is_paused,
                one.metadata.is_ending,
                one.metadata.generation,
            )
        };
        self.spec != other.spec || facts(self) != facts(other)
    }
}

fn read<S: DeserializeOwned>(spec: Value) -> Result<S, Problem> {
    let bytes = length(&spec);
    if bytes > KUBERNETES_REQUEST_BYTES_MAX {
        let detail =
            format!("the spec has {bytes} bytes, and at most {KUBERNETES_REQUEST_BYTES_MAX} are read");
        return Err(Problem::new(Code::TooLarge, detail));
    }
    match spec {
        Value::Object(fields) => strict::from_object(fields),
        Value::Null => strict::from_object(Map::new()),
        _ => Err(Problem::new(Code::MalformedBody, "the spec must be an object")),
    }
}
