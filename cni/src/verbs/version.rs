//! VERSION: the supported versions.
//!
//! Standard input is not read: some runtimes leave it empty, and some leave it open.

use serde::Serialize;

use crate::fail::{Failure, lines};
use crate::result::defect;
use crate::version::CniVersion;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SupportedVersions {
    cni_version: CniVersion,
    supported_versions: [CniVersion; 7],
}

/// Prints the supported versions.
///
/// # Errors
/// None in practice.
pub fn version() -> Result<Vec<u8>, Failure> {
    let supported =
        SupportedVersions { cni_version: CniVersion::LATEST, supported_versions: CniVersion::ALL };
    lines(&supported).map_err(|error| defect(&error.to_string()))
}
