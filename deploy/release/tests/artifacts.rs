//! Artifacts as files: checksums, equal bytes, lintian, bill of materials (acceptance, lines 1, 4 and 8).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::documents::unpacked;
use crate::{artifact, artifacts, package, prepared, root, run, text};

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

/// Prints the file `$3` of the layer `$2` of the image `$1`.
const FILE_OF_LAYER: &str = r#"
    tar --extract --to-stdout --file "$1" "$2" | tar --extract --gzip --to-stdout --file - "$3"
"#;

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

/// File in a tar archive.
fn of_archive(archive: &Path, name: &str) -> String {
    let mut command = Command::new("tar");
    command.args(["--extract", "--to-stdout", "--wildcards", "--no-wildcards-match-slash", name, "--file"]);
    command.arg(archive);
    run(&mut command)
}

/// File of the container image.
fn of_image(name: &str) -> String {
    let image = artifact(".oci.tar");
    let json = |name: &str| -> Value { serde_json::from_str(&of_archive(&image, name)).unwrap() };
    let blob = |value: &Value| format!("blobs/{}", value["digest"].as_str().unwrap().replace(':', "/"));
    let manifest = json(&blob(&json("index.json")["manifests"][0]));
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", FILE_OF_LAYER, "bash"]).arg(&image);
    run(command.arg(blob(&manifest["layers"][0])).arg(name))
}

/// Text with single spaces, so that line ends don't matter.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Licence files at the top of the source folder of each crate of a registry, by the crate.
fn licence_files() -> BTreeMap<(String, String), Vec<PathBuf>> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["metadata", "--locked", "--format-version", "1", "--all-features"]).current_dir(root());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of_registry = metadata["packages"].as_array().unwrap().iter().filter(|one| !one["source"].is_null());
    let files = of_registry.map(|package| {
        let folder = Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap();
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let is_licence = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_str().unwrap().to_uppercase();
            let begins = ["LICENSE", "LICENCE", "UNLICENSE", "COPYING", "COPYRIGHT", "NOTICE"];
            begins.iter().any(|begin| name.starts_with(begin)) && !name.ends_with(".TOML") && path.is_file()
        };
        (name_and_version(package), files.filter(is_licence).collect())
    });
    files.collect()
}

/// Fails unless the document has each crate of the bill of materials with its licence and its texts.
fn assert_licences(document: &str) {
    let crates = document.split("\n\n").nth(1).unwrap().lines().map(|line| {
        let (one, licence) = line.split_once(": ").unwrap();
        assert!(!licence.is_empty(), "{one} has no licence");
        let (name, version) = one.split_once(' ').unwrap();
        (name.to_owned(), version.to_owned())
    });
    let listed: BTreeSet<_> = components().iter().map(name_and_version).collect();
    assert_eq!(crates.collect::<BTreeSet<_>>(), listed);
    let lines: BTreeSet<&str> = document.lines().collect();
    let (all, files) = (squeezed(document), licence_files());
    for one in &listed {
        let begin = format!("{} {} (", one.0, one.1);
        assert!(lines.iter().any(|line| line.starts_with(&begin)), "{one:?} has no text");
        for path in files.get(one).into_iter().flatten() {
            let heading = format!("{begin}{})", path.file_name().unwrap().to_str().unwrap());
            assert!(lines.contains(heading.as_str()), "{heading} is missing");
            let content = squeezed(&std::fs::read_to_string(path).unwrap());
            assert!(all.contains(&content), "the text of {heading} is missing");
        }
    }
    // The sources of C in a crate have a licence of their own.
    assert!(lines.iter().any(|line| line.ends_with(" (jemalloc/COPYING)")), "jemalloc's licence is missing");
    assert!(all.contains("GNU LESSER GENERAL PUBLIC LICENSE"), "the licence of the C library is missing");
}

#[test]
fn p5_8_packages_tarball_and_image_have_the_licences() {
    let own = std::fs::read_to_string(root().join("LICENSE")).unwrap();
    let tarball = artifact(".tar.gz");
    let document = of_archive(&tarball, "*/THIRD-PARTY-LICENSES");
    assert_licences(&document);
    assert_eq!(of_archive(&tarball, "*/LICENSE"), own);
    assert_eq!(of_image("licenses/LICENSE"), own);
    assert!(of_image("licenses/THIRD-PARTY-LICENSES") == document, "the image has another document");
    for name in ["ipamd", "ipam-agent"] {
        let folder = unpacked(name);
        let documents = folder.path().join("usr/share/doc").join(name);
        let copyright = std::fs::read_to_string(documents.join("copyright")).unwrap();
        assert!(copyright.contains("License: Apache-2.0"), "{name}: {copyright}");
        let packaged = run(Command::new("zcat").arg(documents.join("THIRD-PARTY-LICENSES.gz")));
        assert!(packaged == document, "{name} has another document");
    }
}
