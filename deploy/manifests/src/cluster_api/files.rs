//! Files of the provider in `deploy/cluster-api/`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{components, kinds};
use crate::yaml::Holes;

/// Contract of Cluster API that the provider fulfils.
const CONTRACT: &str = "v1beta2";
/// First line of each file.
const NOTE: &str = "# Made by deploy/manifests/src/cluster_api/: cargo xtask chart.\n";

/// Folder of the files in this checkout.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../cluster-api")
}

/// Files by their names: those of clusterctl, and the definitions and rights for `kubectl apply -k`.
///
/// # Errors
/// If a definition can't be made, or the version has no minor number.
pub fn files(version: &str) -> Result<BTreeMap<String, String>> {
    let definitions = kinds::definitions()?;
    let mut all = vec![components::namespace()];
    all.extend(definitions.iter().map(|(_, definition)| definition.clone()));
    all.extend(components::objects(version));
    let mut files = BTreeMap::from([
        ("ipam-components.yaml".to_owned(), text(&all)),
        ("metadata.yaml".to_owned(), text(&[metadata(version)?])),
        ("access.yaml".to_owned(), text(&[components::role()])),
    ]);
    files.extend(
        definitions.iter().map(|(plural, one)| (format!("{plural}.yaml"), text(std::slice::from_ref(one)))),
    );
    let resources: Vec<&String> = files
        .keys()
        .filter(|name| !["ipam-components.yaml", "metadata.yaml"].contains(&name.as_str()))
        .collect();
    let kustomization = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": resources,
    });
    files.insert("kustomization.yaml".to_owned(), text(&[kustomization]));
    Ok(files)
}

/// Text of a file with these objects.
fn text(objects: &[Value]) -> String {
    let texts: Vec<String> = objects.iter().map(|object| Holes::default().write(object)).collect();
    format!("{NOTE}{}", texts.join("---\n"))
}

/// Contracts of the releases, for clusterctl.
fn metadata(version: &str) -> Result<Value> {
    let mut numbers = version.split('.').map(str::parse::<u32>);
    let mut next = || numbers.next().context("the version is too short")?.context("the version is no number");
    let (major, minor) = (next()?, next()?);
    Ok(json!({
        "apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3",
        "kind": "Metadata",
        "releaseSeries": [{"major": major, "minor": minor, "contract": CONTRACT}],
    }))
}
