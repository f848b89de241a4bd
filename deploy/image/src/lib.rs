//! Container image as one OCI archive, written without a registry, a runtime or root.
//!
//! **Invariant:** the bytes of an archive depend on its programs and the [`Image`] alone: entries are sorted,
//! and have fixed owners, modes and times.

mod archive;
pub mod crates;
mod libraries;
pub mod licences;
pub mod tree;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use flate2::{Compression, GzBuilder};
use serde_json::{Value, json};

use self::archive::{Blob, digest};
pub use self::libraries::libraries;
use self::tree::{PROGRAM, Tree};

/// Shipped programs, with the features that they are built with.
pub const PROGRAMS: [(&str, &str); 4] =
    [("ipamd", "jemalloc"), ("ipamctl", ""), ("ipam-cni", ""), ("ipam-agent", "")];
/// Links of the image, with their targets: ipamctl is the plugin `ipam` of kubectl.
pub const LINKS: [(&str, &str); 1] = [("kubectl-ipam", "ipamctl")];
/// User and group of the image, unless the runtime specifies others.
pub const USER: u32 = 65532;
/// Name of the image, before its tag.
pub const NAME: &str = "ipamd";

/// Facts about an image.
#[derive(Debug, Clone)]
pub struct Image {
    /// Version of the programs, and tag of the image.
    pub version: String,
    /// Commit of the sources.
    pub revision: String,
    /// Time of all entries, in seconds since 1970.
    pub time: u64,
    /// Time of all entries, as RFC 3339.
    pub created: String,
    /// Level of the layer's compression with gzip: 9 for releases, 0 for tests, which must be fast.
    pub compression: u32,
    /// Files of the host that the programs need, by their absolute paths. A static program needs none.
    pub libraries: Vec<PathBuf>,
    /// Files with licences.
    pub licences: Tree,
}

impl Image {
    /// The archive, with the programs of a directory.
    ///
    /// # Errors
    /// A file that can't be read.
    pub fn archive(&self, binaries: &Path) -> Result<Vec<u8>> {
        let mut tree = self.licences.clone();
        for (name, _) in PROGRAMS {
            tree.copy(name, &binaries.join(name), PROGRAM)?;
        }
        for path in &self.libraries {
            let inside = path.strip_prefix("/").context("the path of a library must be absolute")?;
            tree.copy(inside.to_str().context("the path of a library is not UTF-8")?, path, PROGRAM)?;
        }
        for (name, target) in LINKS {
            tree.link(name, target);
        }
        let layer = tree.archive(Vec::new(), self.time)?;
        let config = self.config(&digest(&layer));
        let mut gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::new(self.compression));
        gzip.write_all(&layer)?;
        archive::archive(Blob::new(gzip.finish()?), &config, self)
    }

    /// Configuration of the image with the digest of its uncompressed layer. It has no entrypoint: the
    /// manifests name the program by its path.
    fn config(&self, layer: &str) -> Value {
        json!({
            "architecture": architecture(),
            "os": "linux",
            "created": self.created,
            "config": {
                "User": format!("{USER}:{USER}"),
                "WorkingDir": "/",
                "Env": ["PATH=/"],
                "Cmd": ["/ipamd", "serve"],
                "Labels": self.labels(),
            },
            "rootfs": {"type": "layers", "diff_ids": [layer]},
            "history": [{"created": self.created, "created_by": "cargo xtask image"}],
        })
    }

    /// Labels of the OCI specification.
    fn labels(&self) -> Value {
        json!({
            "org.opencontainers.image.title": NAME,
            "org.opencontainers.image.description": "Replicated IP address management",
            "org.opencontainers.image.licenses": "Apache-2.0",
            "org.opencontainers.image.version": self.version,
            "org.opencontainers.image.revision": self.revision,
            "org.opencontainers.image.created": self.created,
        })
    }
}

/// Architecture of this program, as named by the OCI specification.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn image() -> Image {
        let mut licences = Tree::default();
        licences.file("licenses/LICENSE", "text", tree::DATA);
        Image {
            version: "0.1.0".to_owned(),
            revision: "abc".to_owned(),
            time: 1_795_132_800,
            created: "2026-11-20T00:00:00Z".to_owned(),
            compression: 9,
            libraries: Vec::new(),
            licences,
        }
    }

    fn binaries(dir: &Path) {
        for (name, _) in PROGRAMS {
            std::fs::write(dir.join(name), name).unwrap();
        }
    }

    /// Contents of an archive by name.
    fn contents(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut reader = tar::Archive::new(archive);
        let entries = reader.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut entry, &mut bytes).unwrap();
            (entry.path().unwrap().to_str().unwrap().to_owned(), bytes)
        });
        entries.collect()
    }

    #[test]
    fn an_archive_does_not_depend_on_its_folder() {
        let dirs = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let archives = dirs.each_ref().map(|dir| {
            binaries(dir.path());
            image().archive(dir.path()).unwrap()
        });
        assert_eq!(archives[0], archives[1]);
        let other = Image { time: 1, ..image() }.archive(dirs[0].path()).unwrap();
        assert_ne!(archives[0], other);
    }

    #[test]
    fn every_blob_is_named_by_its_digest_and_found_from_the_index() {
        let dir = tempfile::tempdir().unwrap();
        binaries(dir.path());
        let files = contents(&image().archive(dir.path()).unwrap());
        assert_eq!(files["oci-layout"], br#"{"imageLayoutVersion":"1.0.0"}"#);
        let blob = |descriptor: &Value| {
            let digest = descriptor["digest"].as_str().unwrap();
            let bytes = &files[&format!("blobs/{}", digest.replace(':', "/"))];
            assert_eq!(Blob::new(bytes.clone()).digest, digest);
            assert_eq!(descriptor["size"], bytes.len());
            bytes
        };
        let parsed = |bytes: &[u8]| -> Value { serde_json::from_slice(bytes).unwrap() };
        let index = parsed(&files["index.json"]);
        assert_eq!(index["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"], "0.1.0");
        let manifest = parsed(blob(&index["manifests"][0]));
        let config = parsed(blob(&manifest["config"]));
        assert_eq!(config["config"]["User"], "65532:65532");
        assert_eq!(config["config"]["Labels"]["org.opencontainers.image.revision"], "abc");
        let mut compressed = flate2::read::GzDecoder::new(blob(&manifest["layers"][0]).as_slice());
        let mut layer = Vec::new();
        std::io::Read::read_to_end(&mut compressed, &mut layer).unwrap();
        assert_eq!(config["rootfs"]["diff_ids"][0], digest(&layer));
        let mut reader = tar::Archive::new(&layer[..]);
        let entries: Vec<String> = reader
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                assert_eq!((header.uid().unwrap(), header.gid().unwrap()), (0, 0));
                assert_eq!(header.mtime().unwrap(), 1_795_132_800);
                format!("{} {:o}", entry.path().unwrap().display(), header.mode().unwrap())
            })
            .collect();
        let expected = [
            "licenses/ 755",
            "ipam-agent 755",
            "ipam-cni 755",
            "ipamctl 755",
            "ipamd 755",
            "kubectl-ipam 777",
            "licenses/LICENSE 644",
        ];
        assert_eq!(entries, expected);
    }

    #[test]
    fn a_missing_program_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let error = image().archive(dir.path()).unwrap_err();
        assert!(error.to_string().contains("ipamd"), "{error}");
    }
}
