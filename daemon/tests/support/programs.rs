//! Programs under test: those that ship for `cargo xtask test --shipped`, else cargo's test builds.

use std::path::{Path, PathBuf};

/// Environment variable with the directory of the shipped binaries.
const BIN_DIR_ENV: &str = "IPAMD_BIN_DIR";

/// The folder of the shipped binaries, if they are under test.
pub(crate) fn shipped() -> Option<PathBuf> {
    std::env::var_os(BIN_DIR_ENV).map(PathBuf::from)
}

pub(crate) fn ipamd() -> PathBuf {
    find("ipamd")
}

/// Path of cargo's test build of the daemon. It has the options of tests, and is linked dynamically, so that
/// a library can be preloaded.
pub(crate) fn testing_ipamd() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_ipamd"))
}

pub(crate) fn ipamctl() -> PathBuf {
    find("ipamctl")
}

pub(crate) fn ipam_cni() -> PathBuf {
    find("ipam-cni")
}

pub(crate) fn ipam_agent() -> PathBuf {
    find("ipam-agent")
}

/// Path of the mini kubelet, which never ships.
pub(crate) fn mini_kubelet() -> PathBuf {
    in_folder(beside(), "mini-kubelet")
}

/// Path of the stand-in for Multus, which never ships.
pub(crate) fn multus_stand_in() -> PathBuf {
    in_folder(beside(), "multus-stand-in")
}

/// Path of cargo's test build of the agent, with the options of tests.
pub(crate) fn testing_ipam_agent() -> PathBuf {
    in_folder(beside(), "ipam-agent")
}

/// Folder of cargo's test builds.
fn beside() -> PathBuf {
    testing_ipamd().parent().map(Path::to_owned).unwrap()
}

/// Path of a program. Cargo builds one only for the tests of its own package, so a run for the whole
/// workspace has all of them.
fn find(name: &str) -> PathBuf {
    in_folder(shipped().unwrap_or_else(beside), name)
}

fn in_folder(folder: PathBuf, name: &str) -> PathBuf {
    let path = folder.join(name);
    assert!(path.exists(), "{} is missing; first: cargo build --workspace --bins", path.display());
    path
}
