//! The programs under test: those that ship, where `cargo xtask test` built them, else cargo's debug builds.

use std::path::{Path, PathBuf};

/// Says where the shipped binaries are.
const BIN_DIR_ENV: &str = "IPAMD_BIN_DIR";

/// The folder of the shipped binaries, if there is one.
pub(crate) fn shipped() -> Option<PathBuf> {
    std::env::var_os(BIN_DIR_ENV).map(PathBuf::from)
}

pub(crate) fn ipamd() -> PathBuf {
    find("ipamd")
}

/// The daemon as cargo builds it for tests: linked dynamically, so that a library can stand before libc. What
/// ships is static.
pub(crate) fn dynamic_ipamd() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_ipamd"))
}

/// One that knows the next feature level.
pub(crate) fn next_level_ipamd() -> PathBuf {
    let path = ipamd().with_file_name("next-level").join("ipamd");
    assert!(path.exists(), "{} is missing; build it: cargo xtask test --only next-level", path.display());
    path
}

pub(crate) fn ipamctl() -> PathBuf {
    find("ipamctl")
}

pub(crate) fn ipam_cni() -> PathBuf {
    find("ipam-cni")
}

fn find(name: &str) -> PathBuf {
    let (dir, how) = match shipped() {
        Some(dir) => (dir, "cargo xtask build"),
        None => {
            let ours = Path::new(env!("CARGO_BIN_EXE_ipamd")).parent().unwrap();
            (ours.to_owned(), "cargo build -p ipam-cni")
        }
    };
    let path = dir.join(name);
    assert!(path.exists(), "{} is missing; build it: {how}", path.display());
    path
}
