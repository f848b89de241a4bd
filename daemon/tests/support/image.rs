//! The project's own container image, of the programs under test.

use std::path::{Path, PathBuf};
use std::process::Command;

use ipam_image::Image;
use ipam_image::tree::Tree;

use super::programs;

/// Name of the image in the manifests.
pub(crate) const IMAGE: &str = "docker.io/library/ipamd:0.1.0";

/// Writes the archive into a folder. Test builds are dynamic, and get their libraries into the image; without
/// their symbols they are a third as large.
pub(crate) fn archive(folder: &Path) -> PathBuf {
    let binaries = folder.join("binaries");
    std::fs::create_dir(&binaries).unwrap();
    for program in [programs::ipamd(), programs::ipamctl(), programs::ipam_cni(), programs::ipam_agent()] {
        let stripped = binaries.join(program.file_name().unwrap());
        let status = Command::new("strip").arg("-o").arg(stripped).arg(program).status();
        assert!(status.expect("strip, of binutils").success());
    }
    let libraries = ipam_image::libraries(&binaries).unwrap();
    assert_eq!(libraries.is_empty(), programs::shipped().is_some(), "what ships is static: {libraries:?}");
    let image = Image {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        revision: "of a test".to_owned(),
        time: 0,
        created: "1970-01-01T00:00:00Z".to_owned(),
        compression: if programs::shipped().is_some() { 9 } else { 0 },
        libraries,
        licences: Tree::default(),
    };
    let path = folder.join("ipamd.oci.tar");
    std::fs::write(&path, image.archive(&binaries).unwrap()).unwrap();
    std::fs::remove_dir_all(binaries).unwrap();
    path
}
