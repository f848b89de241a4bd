//! Artifacts as files: checksums, equal bytes, lintian, bill of materials (acceptance, lines 1, 4 and 8).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::documents::unpacked;
use crate::{artifacts, package, prepared, root, run, text};

/// Begin and end of the name of each artifact.
const ARTIFACTS: [(&str, &str); 5] = [
    ("ipamd_", ".deb"),
    ("ipam-agent_", ".deb"),
    ("ipamd-", ".tar.gz"),
    ("ipamd-", ".oci.tar"),
    ("ipamd-", ".cdx.json"),
];
/// Shipped programs, with the features that they are built with.
const BUILDS: [(&str, &str); 4] =
    [("ipamd", "jemalloc"), ("ipamctl", ""), ("ipam-cni", ""), ("ipam-agent", "")];
/// Copies the checkout `$1` into the folder `$2`, then writes the artifacts with the command that follows.
const COPY_AND_WRITE: &str = r#"
    umask 077
    tar --create --file - --exclude=./target --exclude=./.git --directory "$1" . |
        tar --extract --file - --no-same-permissions --directory "$2"
    shift 2
    "$@"
"#;

/// Artifact with an end of its name.
fn artifact(end: &str) -> PathBuf {
    let mut files = std::fs::read_dir(artifacts()).unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| path.to_str().unwrap().ends_with(end)).unwrap_or_else(|| panic!("no artifact {end}"))
}

#[test]
fn p5_1_checksums_name_each_artifact() {
    run(Command::new("sha256sum").args(["--check", "--strict", "SHA256SUMS"]).current_dir(artifacts()));
    let sums = std::fs::read_to_string(artifacts().join("SHA256SUMS")).unwrap();
    let listed: BTreeSet<&str> = sums.lines().map(|line| line.rsplit("  ").next().unwrap()).collect();
    let files = std::fs::read_dir(artifacts()).unwrap();
    let files = files.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    for file in files.filter(|file| file != "SHA256SUMS") {
        assert!(listed.contains(file.as_str()), "{file} has no checksum");
    }
    assert_eq!(listed.len(), ARTIFACTS.len(), "{listed:?}");
    for (begin, end) in ARTIFACTS {
        let is_it = |file: &&&str| file.starts_with(begin) && file.ends_with(end);
        assert_eq!(listed.iter().filter(is_it).count(), 1, "{begin}*{end}: {listed:?}");
    }
}

/// A copy of the sources in another folder, under another umask, gives the same bytes. The crate `ipam-image`
/// has the same test for the container image.
#[test]
fn p5_1_a_second_run_gives_the_same_bytes() {
    let [copy, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", COPY_AND_WRITE, "bash"]).arg(root()).arg(copy.path());
    command.arg(env!("CARGO_BIN_EXE_ipam-release")).arg("--root").arg(copy.path());
    command.arg("--binaries").arg(prepared("IPAMD_STRIPPED")).arg("--output").arg(other.path());
    command.args(["--compression", "gzip", "--time", &prepared("IPAMD_TIME").display().to_string()]);
    run(&mut command);
    let sums = |folder: &Path| -> Vec<String> {
        let text = std::fs::read_to_string(folder.join("SHA256SUMS")).unwrap();
        text.lines().filter(|line| !line.ends_with(".oci.tar")).map(str::to_owned).collect()
    };
    assert_eq!(sums(other.path()), sums(&artifacts()));
}

#[test]
fn p5_4_lintian_finds_no_error() {
    for name in ["ipamd", "ipam-agent"] {
        let mut command = Command::new("lintian");
        // The programs of a test run are linked dynamically against the libraries of the machine.
        command.args(["--fail-on", "error", "--suppress-tags", "missing-dependency-on-libc"]);
        run(command.arg("--allow-root").arg(package(name)));
    }
}

/// Components of the bill of materials.
fn components() -> Vec<Value> {
    let bill: Value = serde_json::from_slice(&std::fs::read(artifact(".cdx.json")).unwrap()).unwrap();
    bill["components"].as_array().unwrap().clone()
}

/// Name and version of a component.
fn name_and_version(component: &Value) -> (String, String) {
    let field = |key: &str| component[key].as_str().unwrap().to_owned();
    (field("name"), field("version"))
}

/// Name and version in cargo's identifier of a package: `SOURCE#NAME@VERSION`, or `SOURCE/NAME#VERSION`.
fn name_and_version_of(id: &str) -> (String, String) {
    let (source, fragment) = id.rsplit_once('#').unwrap();
    let (name, version) =
        fragment.split_once('@').unwrap_or_else(|| (source.rsplit('/').next().unwrap(), fragment));
    (name.to_owned(), version.to_owned())
}

/// Crates that cargo would link into a program, from the plan of its build.
fn linked(program: &str, features: &str) -> BTreeSet<(String, String)> {
    let target = tempfile::tempdir().unwrap();
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["build", "--locked", "--release", "--package", program, "--bin", program]);
    command.args(["--features", features, "-Z", "unstable-options", "--unit-graph"]).current_dir(root());
    // The variable lets a stable cargo print its plan, and must not affect the cache of other builds.
    command.env("RUSTC_BOOTSTRAP", "1").env("CARGO_TARGET_DIR", target.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
    let index = |value: &Value| usize::try_from(value.as_u64().unwrap()).unwrap();
    let mut open: Vec<usize> = plan["roots"].as_array().unwrap().iter().map(index).collect();
    let (mut seen, mut crates) = (BTreeSet::new(), BTreeSet::new());
    while let Some(at) = open.pop() {
        let unit = &plan["units"][at];
        // Neither macros nor the runs of build scripts are linked.
        if unit["mode"] != "build" || unit["target"]["kind"][0] == "proc-macro" || !seen.insert(at) {
            continue;
        }
        crates.insert(name_and_version_of(unit["pkg_id"].as_str().unwrap()));
        open.extend(unit["dependencies"].as_array().unwrap().iter().map(|one| index(&one["index"])));
    }
    crates
}

#[test]
fn p5_8_the_bill_of_materials_has_exactly_the_crates_of_the_programs() {
    let components = components();
    let listed: BTreeSet<_> = components.iter().map(name_and_version).collect();
    assert_eq!(listed.len(), components.len(), "a crate is listed twice");
    let shipped: BTreeSet<_> =
        BUILDS.into_iter().flat_map(|(program, features)| linked(program, features)).collect();
    let missing: Vec<_> = shipped.difference(&listed).collect();
    let foreign: Vec<_> = listed.difference(&shipped).collect();
    assert!(missing.is_empty() && foreign.is_empty(), "missing: {missing:?}; foreign: {foreign:?}");
    for shipped in ["openraft", "sled", "rustls", "tikv-jemallocator", "ipam-machine", "pnet_packet"] {
        assert!(listed.iter().any(|(name, _)| name == shipped), "{shipped} is missing");
    }
}

#[test]
fn p5_8_each_crate_has_the_checksum_of_the_lockfile_and_a_licence() {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let lock: toml::Table = lock.parse().unwrap();
    let locked = lock["package"].as_array().unwrap();
    for one in components() {
        let is_it = |package: &&toml::Value| {
            ["name", "version"].into_iter().all(|key| package[key].as_str() == one[key].as_str())
        };
        let package = locked.iter().find(is_it).unwrap_or_else(|| panic!("Cargo.lock lacks {one}"));
        let checksum = package.get("checksum").and_then(toml::Value::as_str);
        assert_eq!(one["hashes"][0]["content"].as_str(), checksum, "{one}");
        let licence = one["licenses"][0]["expression"].as_str();
        assert!(licence.is_some_and(|licence| !licence.is_empty()), "{one}");
    }
}

#[test]
fn p5_8_packages_and_tarball_have_the_licences() {
    let listed: BTreeSet<_> = components().iter().map(name_and_version).collect();
    let check = |list: &str| {
        let lines = list.lines().map(|line| line.split_once(": ").unwrap());
        let crates = lines.map(|(one, licence)| {
            assert!(!licence.is_empty(), "{one} has no licence");
            let (name, version) = one.split_once(' ').unwrap();
            (name.to_owned(), version.to_owned())
        });
        assert_eq!(crates.collect::<BTreeSet<_>>(), listed);
    };
    for name in ["ipamd", "ipam-agent"] {
        let folder = unpacked(name);
        let documents = folder.path().join("usr/share/doc").join(name);
        let copyright = std::fs::read_to_string(documents.join("copyright")).unwrap();
        assert!(copyright.contains("License: Apache-2.0"), "{name}: {copyright}");
        check(&run(Command::new("zcat").arg(documents.join("crates.gz"))));
    }
    let of_tarball = |name: &str| {
        let mut command = Command::new("tar");
        command.args(["--extract", "--to-stdout", "--wildcards", &format!("*/{name}")]);
        run(command.arg("--file").arg(artifact(".tar.gz")))
    };
    check(&of_tarball("LICENSES-OF-CRATES"));
    assert_eq!(of_tarball("LICENSE"), std::fs::read_to_string(root().join("LICENSE")).unwrap());
}
