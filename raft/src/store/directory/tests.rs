//! Ownership of a data directory by one member and one process.

use std::fs;

use crate::store::{Identity, StoreError, lock_dir};

#[test]
fn an_identity_lasts() {
    let dir = tempfile::tempdir().unwrap();
    let mut identity = Identity::load_or_create(dir.path(), "a").unwrap();
    identity.cluster_id = Some("c".to_owned());
    identity.member_id = Some(7);
    identity.founding = true;
    identity.save(dir.path()).unwrap();
    assert_eq!(Identity::load_or_create(dir.path(), "a").unwrap(), identity);
    let other = tempfile::tempdir().unwrap();
    assert_ne!(Identity::load_or_create(other.path(), "a").unwrap().disk_id, identity.disk_id);
}

#[test]
fn a_directory_of_another_name_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    Identity::load_or_create(dir.path(), "a").unwrap();
    let error = Identity::load_or_create(dir.path(), "b").unwrap_err().to_string();
    assert!(error.contains("\"a\"") && error.contains("\"b\""), "{error}");
}

#[tokio::test]
async fn a_used_directory_without_its_identity_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    Identity::load_or_create(dir.path(), "a").unwrap();
    crate::store::tests::sample::stop(crate::store::open(dir.path()).await.unwrap()).await;
    fs::remove_file(dir.path().join("identity.json")).unwrap();
    assert!(matches!(Identity::load_or_create(dir.path(), "a"), Err(StoreError::Damaged { .. })));
}

#[test]
fn an_identity_that_does_not_read_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("identity.json");
    fs::write(&path, "{").unwrap();
    assert!(matches!(Identity::load(dir.path()), Err(StoreError::Damaged { .. })));
    fs::write(&path, r#"{"version": 99, "disk_id": "d", "name": "a"}"#).unwrap();
    assert!(matches!(Identity::load(dir.path()), Err(StoreError::TooNew { version: 99, .. })));
}

#[test]
fn one_process_per_directory() {
    let dir = tempfile::tempdir().unwrap();
    let lock = lock_dir(dir.path()).unwrap();
    let error = lock_dir(dir.path()).unwrap_err().to_string();
    assert!(error.contains(&format!("another ipamd (pid {})", std::process::id())), "{error}");
    drop(lock);
    lock_dir(dir.path()).unwrap();
}
