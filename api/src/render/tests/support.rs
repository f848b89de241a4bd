//! Cases, and addresses for tests.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::resource::Interface;

/// Folder of the cases and of their golden files.
pub(super) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/render")
}

/// The cases that the tests with the real tools use too.
pub(super) fn cases() -> BTreeMap<String, Vec<Interface>> {
    serde_json::from_slice(&std::fs::read(folder().join("cases.json")).unwrap()).unwrap()
}

/// One interface from the JSON of its addresses.
pub(super) fn interface(name: &str, addresses: &serde_json::Value) -> Interface {
    let mut value = serde_json::json!({"name": name, "addresses": addresses});
    for address in value["addresses"].as_array_mut().unwrap() {
        for (field, default) in
            [("pool", "rack-12".into()), ("allocation", 7.into()), ("checked", false.into())]
        {
            address.as_object_mut().unwrap().entry(field).or_insert(default);
        }
    }
    serde_json::from_value(value).unwrap()
}
