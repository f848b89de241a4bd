//! OCI image layout in a tar file: blobs by their digests, and an index.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tar::{Builder, EntryType};

use crate::layer::header;
use crate::{Image, NAME};

/// Archive of an image with one layer.
pub(crate) fn archive(layer: &[u8], config: &Value, image: &Image) -> Result<Vec<u8>> {
    let config = serde_json::to_vec(config)?;
    let manifest = serde_json::to_vec(&json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": descriptor("application/vnd.oci.image.config.v1+json", &config),
        "layers": [descriptor("application/vnd.oci.image.layer.v1.tar", layer)],
    }))?;
    let index = serde_json::to_vec(&json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [{
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "digest": digest(&manifest),
            "size": manifest.len(),
            // The first name is that of the specification, the second one that of containerd.
            "annotations": {
                "org.opencontainers.image.ref.name": image.version,
                "io.containerd.image.name": format!("docker.io/library/{NAME}:{}", image.version),
            },
        }],
    }))?;
    let mut files = BTreeMap::from([
        ("oci-layout".to_owned(), &br#"{"imageLayoutVersion":"1.0.0"}"#[..]),
        ("index.json".to_owned(), &index[..]),
    ]);
    for blob in [layer, &config, &manifest] {
        files.insert(format!("blobs/{}", digest(blob).replace(':', "/")), blob);
    }
    let mut tar = Builder::new(Vec::new());
    for (path, content) in files {
        let size = u64::try_from(content.len())?;
        tar.append_data(&mut header(EntryType::Regular, 0o644, size, image.time), path, content)?;
    }
    Ok(tar.into_inner()?)
}

/// Digest of a blob, with the name of its algorithm.
pub(crate) fn digest(bytes: &[u8]) -> String {
    let hexadecimal: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hexadecimal}")
}

fn descriptor(media_type: &str, bytes: &[u8]) -> Value {
    json!({"mediaType": media_type, "digest": digest(bytes), "size": bytes.len()})
}
