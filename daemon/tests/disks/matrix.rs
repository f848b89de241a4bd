//! `deploy/docs/disk-faults.md` and these tests: neither promises what the other doesn't show.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The last column of the rows of the matrix.
fn promised(page: &str) -> BTreeSet<String> {
    let matrix = page.split("## The matrix").nth(1).unwrap();
    let rows = matrix.lines().filter(|line| line.starts_with("| ") && line.contains("::"));
    rows.map(|row| row.trim_end_matches(" |").rsplit("| ").next().unwrap().trim_matches('`').to_owned())
        .collect()
}

/// Tests of this folder, as `module::name`.
fn shown(folder: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let module = path.file_stem().unwrap().to_str().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        for after in text.split("#[tokio::test").skip(1) {
            let name = after.split("async fn ").nth(1).unwrap().split('(').next().unwrap();
            names.insert(format!("{module}::{name}"));
        }
    }
    names.retain(|name| !name.starts_with("matrix::"));
    names
}

#[test]
fn every_row_has_its_test_and_every_test_its_row() {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(crate_dir.join("../deploy/docs/disk-faults.md")).unwrap();
    assert_eq!(promised(&page), shown(&crate_dir.join("tests/disks")));
}
