//! Part of an object that the watcher keeps.

use ipam_api::limits::{BODY_BYTES_MAX, KUBERNETES_CUSTOM_STATUS_BYTES_MAX};
use ipam_api::name::ObjectName;
use ipam_api::{Code, Problem};
use serde_json::Value;

use super::range::NodeRange;
use crate::custom::{CustomObject, length};

/// Part of an object that the watcher keeps.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PoolFacts {
    pub(crate) uid: String,
    pub(crate) generation: i64,
    pub(crate) range: Result<NodeRange, Problem>,
    /// Requested reset; none without the annotation.
    pub(crate) reset: Option<String>,
    /// Present status; null if there is none, or if it is too long.
    pub(crate) status: Value,
}

impl PoolFacts {
    /// Name and facts of an object.
    pub(crate) fn of(object: CustomObject) -> Option<(ObjectName, Self)> {
        let CustomObject { metadata, spec, status, .. } = object;
        let name = ObjectName::new(&metadata.name).ok()?;
        let range = if length(&spec) <= BODY_BYTES_MAX {
            NodeRange::read(&name, spec)
        } else {
            Err(Problem::new(Code::TooLarge, format!("the spec has more than {BODY_BYTES_MAX} bytes")))
        };
        let is_short = length(&status) <= KUBERNETES_CUSTOM_STATUS_BYTES_MAX;
        let facts = Self {
            reset: metadata.reset(),
            uid: metadata.uid,
            generation: metadata.generation,
            range,
            status: if is_short { status } else { Value::Null },
        };
        Some((name, facts))
    }

    /// True if the status does not show the generation or the reset of the object.
    pub(crate) fn is_pending(&self) -> bool {
        let reset = self.status.get("observedReset").and_then(Value::as_str);
        let generation = self.status.get("observedGeneration").and_then(Value::as_i64);
        generation != Some(self.generation) || reset != self.reset.as_deref()
    }
}
