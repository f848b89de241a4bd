//! Artifacts as files: checksums, equal bytes, lintian, bill of materials (acceptance, lines 1, 4 and 8).

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::{artifacts, package, prepared, root, run};

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
    for kind in [".tar.gz", ".deb", ".cdx.json"] {
        assert!(listed.iter().any(|file| file.ends_with(kind)), "{listed:?}");
    }
}

/// The same sources in another folder, under another umask, give the same bytes.
#[test]
fn p5_1_a_second_run_gives_the_same_bytes() {
    let other = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "umask 077 && exec \"$@\"", "sh", env!("CARGO_BIN_EXE_ipam-release")]);
    command.arg("--root").arg(root()).arg("--binaries").arg(prepared("IPAMD_STRIPPED"));
    command.args(["--compression", "gzip", "--time", &prepared("IPAMD_TIME").display().to_string()]);
    run(command.arg("--output").arg(other.path()));
    let sums = |folder: &Path| std::fs::read_to_string(folder.join("SHA256SUMS")).unwrap();
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

#[test]
fn p5_8_the_bill_of_materials_has_the_crates_of_the_programs() {
    let files = std::fs::read_dir(artifacts()).unwrap().map(|entry| entry.unwrap().path());
    let bill = files.into_iter().find(|path| path.to_str().unwrap().ends_with(".cdx.json")).unwrap();
    let bill: serde_json::Value = serde_json::from_slice(&std::fs::read(bill).unwrap()).unwrap();
    let components = bill["components"].as_array().unwrap();
    let names: BTreeSet<&str> = components.iter().map(|one| one["name"].as_str().unwrap()).collect();
    for shipped in ["openraft", "sled", "rustls", "tikv-jemallocator", "ipam-machine", "pnet_packet"] {
        assert!(names.contains(shipped), "{shipped} is missing");
    }
    for foreign in ["proptest", "turmoil", "serde_derive", "tempfile", "xtask", "ipam-jepsen"] {
        assert!(!names.contains(foreign), "{foreign} does not ship");
    }
    for one in components {
        let own = one["name"].as_str().unwrap().starts_with("ipam");
        assert!(own || one["hashes"][0]["content"].is_string(), "{one}");
        assert_ne!(one["licenses"][0]["expression"], "", "{one}");
    }
}
