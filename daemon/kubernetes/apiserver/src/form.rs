//! Forms in which a client may request objects: whole, metadata alone, or rows of a table.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::path::Place;
use crate::status::Refusal;
use crate::table::{Include, table};

/// Form of the objects in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Whole,
    Metadata,
    Table(Include),
}

impl Form {
    /// Form by the first choice of the header `Accept`.
    ///
    /// # Errors
    /// 406 for a form that the answer can't have.
    pub(crate) fn of(accept: &str, query: &str, is_list: bool) -> Result<Self, Refusal> {
        let first = accept.split(',').next().unwrap_or_default();
        let kind = first.split(';').find_map(|parameter| parameter.trim().strip_prefix("as="));
        match (kind, is_list) {
            (None, _) => Ok(Self::Whole),
            (Some("Table"), _) => Ok(Self::Table(Include::of(query)?)),
            (Some("PartialObjectMetadata"), false) | (Some("PartialObjectMetadataList"), true) => {
                Ok(Self::Metadata)
            }
            (Some(kind), _) => {
                Err(Refusal::new(406, format!("you requested {kind}, which the answer is not")))
            }
        }
    }

    /// Object or list in this form.
    pub(crate) fn shown(self, place: &Place, object: Value, now: Timestamp) -> Value {
        match self {
            _ if object["kind"] == "Status" && object["apiVersion"] == "v1" => object,
            Self::Whole => object,
            Self::Metadata => metadata(&object),
            Self::Table(include) => table(place, &object, include, now),
        }
    }
}

/// Reduces an object, or the items of a list, to its metadata.
pub(crate) fn metadata(object: &Value) -> Value {
    let version = "meta.k8s.io/v1";
    match object["items"].as_array() {
        Some(items) => json!({
            "kind": "PartialObjectMetadataList", "apiVersion": version, "metadata": object["metadata"],
            "items": items.iter().map(metadata).collect::<Vec<_>>(),
        }),
        None => {
            json!({"kind": "PartialObjectMetadata", "apiVersion": version, "metadata": object["metadata"]})
        }
    }
}
