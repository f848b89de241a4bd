//! YAML of the formats that have it.

use serde::Serialize;

use super::file::RenderError;

/// Writes a document. Text that YAML 1.1 or 1.2 reads as another type is quoted.
pub(super) fn text(document: &impl Serialize) -> Result<String, RenderError> {
    serde_saphyr::to_string(document).map_err(|error| RenderError(format!("no YAML: {error}")))
}
