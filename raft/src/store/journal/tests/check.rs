//! Check of a stopped member's journal: each altered byte is found, and the file named.

use std::fs;
use std::path::Path;

use super::pages::{Naive, files, open_file, segments};
use crate::store::journal::check_journal;
use crate::store::tests::sample::{kill, run, write_behind};
use crate::store::{lock_dir, open};

/// The journal of a member that was killed: some sealed segments and an open one.
async fn journal(dir: &Path) {
    let mut naive = Naive::new();
    let mut store = open(dir).await.unwrap();
    run(&mut store, naive.entries(130)).await;
    write_behind(&store).await;
    kill(store).await;
}

fn damaged(dir: &Path) -> Vec<String> {
    let damaged = check_journal(dir).unwrap().damaged.into_iter();
    damaged.map(|one| one.path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn whichever_byte_is_altered_the_file_is_named_and_nothing_is_changed() {
    let dir = tempfile::tempdir().unwrap();
    journal(dir.path()).await;
    let before = files(dir.path());
    let report = check_journal(dir.path()).unwrap();
    assert!(report.damaged.is_empty(), "{report:?}");
    assert_eq!((report.sealed, report.torn), (segments(dir.path()).len() as u64, false));
    assert!(report.sealed >= 3 && report.open_frames > 0 && report.sealed_events > 60, "{report:?}");
    for (name, content) in before.iter().filter(|(name, _)| !name.ends_with(".new")) {
        let path = dir.path().join("journal").join(name);
        for at in (0..content.len()).step_by(content.len() / 40 + 1).chain([content.len() - 1]) {
            let mut altered = content.clone();
            altered[at] ^= 0x20;
            fs::write(&path, altered).unwrap();
            assert_eq!(damaged(dir.path()), std::slice::from_ref(name), "byte {at}");
        }
        fs::write(&path, content).unwrap();
    }
    assert_eq!(files(dir.path()), before);
}

#[tokio::test]
async fn whole_segments_that_are_no_chain_are_found() {
    let dir = tempfile::tempdir().unwrap();
    journal(dir.path()).await;
    let all = segments(dir.path());
    let path = |at: usize| dir.path().join("journal").join(&all[at].0);
    // A foreign segment, one under a wrong name, and a missing one.
    fs::write(path(1), &all[2].1).unwrap();
    assert_eq!(damaged(dir.path())[0], all[1].0);
    fs::remove_file(path(1)).unwrap();
    assert_eq!(damaged(dir.path()), std::slice::from_ref(&all[1].0));
    fs::write(path(1), &all[1].1).unwrap();
    assert!(damaged(dir.path()).is_empty());
    // A tail that was not written out is no damage.
    let open = open_file(dir.path());
    let content = fs::read(&open).unwrap();
    fs::write(&open, &content[..content.len() - 3]).unwrap();
    let report = check_journal(dir.path()).unwrap();
    assert!(report.torn && report.damaged.is_empty(), "{report:?}");
}

#[test]
fn a_member_that_is_up_and_a_directory_that_is_none_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let error = check_journal(dir.path()).unwrap_err().to_string();
    assert!(error.contains("journal"), "{error}");
    assert!(fs::read_dir(dir.path()).unwrap().next().is_none(), "nothing was made there");
    fs::create_dir(dir.path().join("journal")).unwrap();
    let _up = lock_dir(dir.path()).unwrap();
    let error = check_journal(dir.path()).unwrap_err().to_string();
    assert!(error.contains("stop it"), "{error}");
}
