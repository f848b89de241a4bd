//! Provider of Cluster API: its definitions, and the files for clusterctl.

mod clusterctl;
mod kinds;
mod page;
mod substitute;

use ipam_manifests::cluster_api::{files, folder};
use ipam_manifests::documents;
use serde_json::Value;

/// Writes the files anew.
pub(crate) fn write() {
    std::fs::create_dir_all(folder()).unwrap();
    for (name, text) in files(env!("CARGO_PKG_VERSION")).unwrap() {
        std::fs::write(folder().join(name), text).unwrap();
    }
}

/// Text of a committed file.
fn file(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).unwrap_or_default()
}

/// Objects of the components, with the variables that clusterctl requires.
pub(crate) fn components() -> Vec<Value> {
    let values = [("IPAMD_SERVER", "https://a.example:7440")];
    documents(&substitute::variables(&file("ipam-components.yaml"), &values).unwrap()).unwrap()
}

#[test]
fn the_committed_files_are_made_of_the_types() {
    if std::env::var_os("UPDATE").is_some() {
        write();
    }
    let made = files(env!("CARGO_PKG_VERSION")).unwrap();
    for (name, text) in &made {
        assert!(file(name) == *text, "{name} is not up to date; first: cargo xtask chart");
    }
    let kept = std::fs::read_dir(folder()).unwrap();
    assert_eq!(kept.count(), made.len(), "a file of the folder is not made by this crate");
}
