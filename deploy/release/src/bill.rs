//! Bill of materials in the format of CycloneDX 1.5: the crates that the shipped programs contain.
//!
//! `Cargo.lock` has their checksums.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result};
use ipam_image::crates::Crate;
use ipam_image::tree::read;
use serde::Deserialize;
use serde_json::{Value, json};

/// Lockfile, with the fields that the bill needs.
#[derive(Debug, Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Debug, Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
}

/// The document.
///
/// # Errors
/// If a crate is not in the lockfile.
pub(crate) fn document(root: &Path, crates: &BTreeSet<Crate>, version: &str) -> Result<String> {
    let lock: Lock = toml::from_str(std::str::from_utf8(&read(&root.join("Cargo.lock"))?)?)?;
    let checksums = lock.package.into_iter().map(|locked| ((locked.name, locked.version), locked.checksum));
    let checksums: BTreeMap<_, _> = checksums.collect();
    let components: Vec<Value> =
        crates.iter().map(|one| component(one, &checksums)).collect::<Result<_>>()?;
    let document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "ipamd", "version": version}},
        "components": components,
    });
    Ok(format!("{document:#}\n"))
}

fn component(one: &Crate, checksums: &BTreeMap<(String, String), Option<String>>) -> Result<Value> {
    let Crate { name, version, licence } = one;
    let key = (name.clone(), version.clone());
    let checksum = checksums.get(&key).with_context(|| format!("Cargo.lock has no {name} {version}"))?;
    let mut component = json!({
        "type": "library",
        "name": name,
        "version": version,
        "purl": format!("pkg:cargo/{name}@{version}"),
        "licenses": [{"expression": licence.replace('/', " OR ")}],
    });
    // Crates of this workspace have no checksum.
    if let (Some(checksum), Some(fields)) = (checksum, component.as_object_mut()) {
        fields.insert("hashes".into(), json!([{"alg": "SHA-256", "content": checksum}]));
    }
    Ok(component)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_has_the_checksum_of_the_lockfile() {
        let serde = Crate { name: "serde".into(), version: "1.0.1".into(), licence: "MIT/Zlib".into() };
        let checksums = BTreeMap::from([(("serde".into(), "1.0.1".into()), Some("ab".into()))]);
        let shown = component(&serde, &checksums).unwrap();
        assert_eq!(shown["hashes"][0]["content"], "ab");
        assert_eq!(shown["licenses"][0]["expression"], "MIT OR Zlib");
        assert_eq!(shown["purl"], "pkg:cargo/serde@1.0.1");
        assert!(component(&serde, &BTreeMap::new()).is_err(), "a crate that the lockfile lacks");
    }
}
