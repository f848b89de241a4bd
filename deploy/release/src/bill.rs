//! Bill of materials in the format of CycloneDX 1.5: the crates that the shipped programs contain.
//!
//! Cargo names the crates of each program, with its features and for this machine's target; `Cargo.lock` has
//! their checksums. Crates that only build the programs (macros, build scripts) are not listed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use ipam_image::tree::read;
use serde::Deserialize;
use serde_json::{Value, json};

/// Crate of a program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Crate {
    name: String,
    version: String,
    licence: String,
}

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

/// Crates of programs, each with its features.
///
/// # Errors
/// If cargo fails.
pub(crate) fn crates(root: &Path, programs: &[(&str, &str)]) -> Result<BTreeSet<Crate>> {
    let mut crates = BTreeSet::new();
    for (package, features) in programs {
        crates.extend(crates_of(&tree(root, package, features)?)?);
    }
    Ok(crates)
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

/// Licences of all crates as a text for packages.
pub(crate) fn licences(crates: &BTreeSet<Crate>) -> String {
    crates.iter().map(|one| format!("{} {}: {}\n", one.name, one.version, one.licence)).collect()
}

/// Dependencies that cargo prints, one a line: name, version and licence.
fn tree(root: &Path, package: &str, features: &str) -> Result<String> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["tree", "--locked", "--edges", "normal,no-proc-macro", "--prefix", "none", "--no-dedupe"]);
    command.args(["--format", "{p}\t{l}", "--package", package, "--features", features]).current_dir(root);
    let output = command.output().context("can't start cargo")?;
    if !output.status.success() {
        bail!("cargo tree: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn crates_of(printed: &str) -> Result<BTreeSet<Crate>> {
    let lines = printed.lines().filter(|line| !line.trim().is_empty());
    let parse = |line: &str| {
        let (package, licence) = line.split_once('\t')?;
        let mut words = package.split(' ');
        let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
        Some(Crate { name: name.into(), version: version.into(), licence: licence.trim().into() })
    };
    lines.map(|line| parse(line).with_context(|| format!("cargo tree printed {line:?}"))).collect()
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
    fn a_crate_is_listed_once_and_with_its_checksum() {
        let serde = "serde v1.0.1\tMIT OR Apache-2.0\n";
        let printed = format!("ipamd v0.1.0 (/x/daemon)\tApache-2.0\n{serde}\n{serde}");
        let crates = crates_of(&printed).unwrap();
        assert_eq!(crates.len(), 2);
        let serde = crates.iter().find(|one| one.name == "serde").unwrap();
        let checksums = BTreeMap::from([(("serde".into(), "1.0.1".into()), Some("ab".into()))]);
        let shown = component(serde, &checksums).unwrap();
        assert_eq!(shown["hashes"][0]["content"], "ab");
        assert_eq!(shown["purl"], "pkg:cargo/serde@1.0.1");
        assert!(component(serde, &BTreeMap::new()).is_err(), "a crate that the lockfile lacks");
        assert!(crates_of("serde\n").is_err());
    }
}
