//! Manifests as kustomize renders them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// Folder of the manifests in this checkout.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../kubernetes")
}

/// Debian's kubectl, unpacked by `cargo xtask test --only packages`. It has kustomize 2.0.3 built in, as
/// every kubectl since 1.14; later ones accept more.
#[must_use]
pub fn kubectl() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = std::env::var_os("CARGO_TARGET_DIR").filter(|dir| !dir.is_empty());
    target.map_or_else(|| root.join("target"), PathBuf::from).join("tools/kubectl/usr/bin/kubectl")
}

/// Objects of a kustomization, in the order of kind, namespace and name.
///
/// # Errors
/// If kubectl fails, with its reason.
pub fn render(dir: &Path) -> Result<Vec<Value>> {
    let kubectl = kubectl();
    if !kubectl.exists() {
        bail!("{} is missing; first: cargo xtask test --only packages", kubectl.display());
    }
    let output = Command::new(kubectl).arg("kustomize").arg(dir).output().context("can't start kubectl")?;
    if !output.status.success() {
        bail!("{}: {}", dir.display(), String::from_utf8_lossy(&output.stderr).trim());
    }
    documents(&String::from_utf8(output.stdout)?)
}

/// Objects of a text with YAML documents, in the order of kind, namespace and name.
///
/// # Errors
/// If the text is no valid YAML, with the position of the mistake.
pub fn documents(text: &str) -> Result<Vec<Value>> {
    let mut objects: Vec<Value> = serde_saphyr::from_multiple(text)?;
    objects.retain(|object| !object.is_null());
    objects.sort_by_key(|object| {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        [text("/kind"), text("/metadata/namespace"), text("/metadata/name")]
    });
    Ok(objects)
}
