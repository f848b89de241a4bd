//! Feature resolution: the shipped binaries have no test features, and all other builds share one set.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail};

use crate::binaries::SHIPPED;
use crate::workspace::Workspace;

/// Crates of TLS, name resolution and YAML. Merely linking a TLS crate costs milliseconds per run, and the
/// plugin runs once per container.
const NOT_IN_PLUGIN: [&str; 6] =
    ["rustls", "ring", "native-tls", "openssl-sys", "hickory-resolver", "serde-saphyr"];
/// Features of tests: access for tests, start options of tests, and replacements for a simulation.
const OF_TESTS: [&str; 2] = ["testing", "simulation"];
/// The packages that have one of these features.
const TESTED: [&str; 5] = ["ipam-agent", "ipam-api", "ipam-machine", "ipam-raft", "ipamd"];

/// The feature sets of each package. Host and target may each have one.
type Features = BTreeMap<String, BTreeSet<String>>;

/// Checks the features of the shipped binaries, and that other builds share their dependencies.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    for (package, _) in SHIPPED {
        let shipped = resolve(workspace, &["--package", package, "--edges", "normal,build"])?;
        if let Some(package) = testing(&shipped).first() {
            bail!("the shipped binaries would have a feature of tests ({OF_TESTS:?}) of {package}");
        }
        if package == "ipam-cni"
            && let Some(name) =
                shipped.keys().find(|name| NOT_IN_PLUGIN.iter().any(|one| is_package(name, one)))
        {
            bail!(
                "ipam-cni is built of {name} (features `names`, `render` and `tls` of ipam-api, which it \
                 must not have)"
            );
        }
    }
    let built = resolve(workspace, &["--workspace", "--edges", "normal,build"])?;
    // Without this check, the check above would silently miss a renamed feature.
    let tested = testing(&built);
    if !TESTED.iter().all(|package| tested.iter().any(|name| is_package(name, package))) {
        bail!("the tests need a feature ({OF_TESTS:?}) of each of {TESTED:?}; found those of {tested:?}");
    }
    let tests = resolve(workspace, &["--workspace", "--edges", "normal,build,dev"])?;
    match unshared(&built, &tests) {
        Some((package, set)) => bail!(
            "`cargo build --workspace` has {package} with the features [{set}], the tests have it with others: it is \
             built twice; let deploy/fuzz/Cargo.toml ask for what the tests add"
        ),
        None => Ok(()),
    }
}

/// Reads cargo's resolution of a build.
fn resolve(workspace: &Workspace, arguments: &[&str]) -> Result<Features> {
    let words = ["tree", "--locked", "--prefix", "none", "--format", "{p}|{f}"];
    let output = workspace.cargo(words).args(arguments).output().context("can't start cargo")?;
    if !output.status.success() {
        bail!("cargo tree failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(read(&String::from_utf8_lossy(&output.stdout)))
}

/// Reads `NAME VERSION …|FEATURE,FEATURE`, a line each.
fn read(tree: &str) -> Features {
    let mut features = Features::new();
    for line in tree.lines() {
        // An asterisk marks a package whose dependencies were listed before.
        let Some((package, set)) = line.trim_end_matches(" (*)").split_once('|') else { continue };
        features.entry(package.to_owned()).or_default().insert(set.to_owned());
    }
    features
}

/// Packages of this workspace with a feature of tests.
fn testing(features: &Features) -> Vec<&str> {
    let has = |set: &String| set.split(',').any(|feature| OF_TESTS.contains(&feature));
    let ours = features.iter().filter(|(package, _)| TESTED.iter().any(|name| is_package(package, name)));
    ours.filter(|(_, sets)| sets.iter().any(has)).map(|(package, _)| package.as_str()).collect()
}

fn is_package(listed: &str, name: &str) -> bool {
    listed.split(' ').next() == Some(name)
}

/// First package that the two builds have with different features.
fn unshared<'a>(build: &'a Features, tests: &Features) -> Option<(&'a str, &'a str)> {
    let sets = build.iter().flat_map(|(package, sets)| sets.iter().map(move |set| (package, set)));
    let mut missing =
        sets.filter(|(package, set)| !tests.get(*package).is_some_and(|sets| sets.contains(*set)));
    missing.next().map(|(package, set)| (package.as_str(), set.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_read_with_and_without_a_mark() {
        let features = read("ipamd v0.1.0 (/x)|testing\n\nsyn v2.0.1|default,full (*)\nsyn v2.0.1|default\n");
        assert_eq!(testing(&features), ["ipamd v0.1.0 (/x)"]);
        let syn: Vec<&str> = features["syn v2.0.1"].iter().map(String::as_str).collect();
        assert_eq!(syn, ["default", "default,full"]);
        assert_eq!(testing(&read("ipam-api v0.1.0 (/x)|default,simulation\n")), ["ipam-api v0.1.0 (/x)"]);
        assert_eq!(
            testing(&read("ipamd v0.1.0 (/x)|testing-more\nother v1.0.0|testing\n")),
            Vec::<&str>::new()
        );
    }

    #[test]
    fn a_dependency_with_other_features_is_found() {
        let tests = read("syn v2.0.1|default,full\nserde v1.0.0|\n");
        assert_eq!(unshared(&read("syn v2.0.1|default,full\n"), &tests), None);
        assert_eq!(unshared(&read("syn v2.0.1|default\n"), &tests), Some(("syn v2.0.1", "default")));
        assert_eq!(unshared(&read("sled v0.34.7|\n"), &tests), Some(("sled v0.34.7", "")));
    }
}
