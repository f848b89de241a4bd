//! OCI image layout in a tar file: blobs by their digests, and an index.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tar::{Builder, EntryType};

use crate::tree::header;
use crate::{Image, NAME};

/// Content that other contents reference by its digest.
pub(crate) struct Blob {
    pub(crate) digest: String,
    content: Vec<u8>,
}

impl Blob {
    pub(crate) fn new(content: Vec<u8>) -> Self {
        Self { digest: digest(&content), content }
    }

    fn json(value: &Value) -> Result<Self> {
        Ok(Self::new(serde_json::to_vec(value)?))
    }

    fn descriptor(&self, media_type: &str, annotations: &Value) -> Value {
        let size = self.content.len();
        json!({"mediaType": media_type, "digest": self.digest, "size": size, "annotations": annotations})
    }
}

/// Digest of a content, as the specification writes it.
pub(crate) fn digest(content: &[u8]) -> String {
    let hexadecimal: String = Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hexadecimal}")
}

/// Archive of an image with one compressed layer.
pub(crate) fn archive(layer: Blob, config: &Value, image: &Image) -> Result<Vec<u8>> {
    let config = Blob::json(config)?;
    let none = json!({});
    let manifest = Blob::json(&json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config.descriptor("application/vnd.oci.image.config.v1+json", &none),
        "layers": [layer.descriptor("application/vnd.oci.image.layer.v1.tar+gzip", &none)],
    }))?;
    // The first name is from the specification, the second one from containerd.
    let names = json!({
        "org.opencontainers.image.ref.name": image.version,
        "io.containerd.image.name": format!("docker.io/library/{NAME}:{}", image.version),
    });
    let index = serde_json::to_vec(&json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [manifest.descriptor("application/vnd.oci.image.manifest.v1+json", &names)],
    }))?;
    let mut files = BTreeMap::from([
        ("oci-layout".to_owned(), br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec()),
        ("index.json".to_owned(), index),
    ]);
    for Blob { digest, content } in [layer, config, manifest] {
        files.insert(format!("blobs/{}", digest.replace(':', "/")), content);
    }
    let mut tar = Builder::new(Vec::new());
    for (path, content) in files {
        let size = u64::try_from(content.len())?;
        tar.append_data(&mut header(EntryType::Regular, 0o644, size, image.time), path, &*content)?;
    }
    Ok(tar.into_inner()?)
}
