//! Patches of objects.

use serde_json::Value;

use crate::merge::{Shape, strategic_merge};
use crate::path::Place;
use crate::status::Refusal;

/// Format of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// RFC 6902.
    Json,
    /// RFC 7396.
    Merge,
    /// RFC 7396 with lists that merge by keys; for built-in kinds.
    Strategic,
    /// Server-side apply.
    Apply,
}

impl Format {
    /// Format by its media type.
    ///
    /// # Errors
    /// 415 for another media type.
    pub(crate) fn of(media_type: &str, place: &Place) -> Result<Self, Refusal> {
        match media_type.split(';').next().unwrap_or_default().trim() {
            "application/json-patch+json" => Ok(Self::Json),
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/strategic-merge-patch+json" if place.custom.is_none() => Ok(Self::Strategic),
            "application/apply-patch+yaml" if !place.is_scale() => Ok(Self::Apply),
            other => Err(Refusal::new(415, format!("patches of {other:?} are not supported"))),
        }
    }
}

/// Object after a patch, except for an apply.
///
/// # Errors
/// 400 for a malformed patch, 422 for one that doesn't apply to the object.
pub(crate) fn patched(
    format: Format,
    place: &Place,
    present: &Value,
    patch: Value,
) -> Result<Value, Refusal> {
    let mut object = present.clone();
    match format {
        Format::Json => {
            let operations: json_patch::Patch =
                serde_json::from_value(patch).map_err(|error| Refusal::new(400, error.to_string()))?;
            json_patch::patch(&mut object, &operations)
                .map_err(|error| Refusal::new(422, error.to_string()))?;
        }
        Format::Strategic => strategic_merge(&mut object, &patch, Shape::of(place)),
        Format::Merge => json_patch::merge(&mut object, &patch),
        Format::Apply => unreachable!("an apply has managers, and needs no present object"),
    }
    Ok(object)
}
