//! `ipamd dev` in a terminal.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::support::programs;

/// Presses Ctrl-C after a line with this text. Returns the exit code and the later lines.
fn interrupted(arguments: &[&str], text: &str) -> (Option<i32>, Vec<String>) {
    let mut dev = Command::new(programs::ipamd())
        .arg("dev")
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let mut printed = BufReader::new(dev.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(printed.any(|line| line.contains(text)));
    // A terminal sends it to all processes of the group.
    kill_process_group(Pid::from_child(&dev), Signal::INT).unwrap();
    let after = printed.collect();
    (dev.wait().unwrap().code(), after)
}

#[test]
fn ctrl_c_takes_away_all_that_was_made() {
    assert_eq!(interrupted(&[], "Ctrl-C stops everything"), (Some(0), Vec::new()));
}

#[test]
fn ctrl_c_during_the_start_is_no_failure_but_no_passed_check_either() {
    for _ in 0..5 {
        assert_eq!(interrupted(&[], "starting three members"), (Some(0), Vec::new()));
    }
    let said = "ipamd dev: interrupted before everything was verified".to_owned();
    assert_eq!(interrupted(&["--check"], "starting three members"), (Some(1), vec![said]));
}

#[test]
fn kept_files_belong_to_their_owner_alone() {
    let keep = tempfile::tempdir().unwrap();
    let dir = keep.path().join("kept");
    let dev = Command::new(programs::ipamd()).args(["dev", "--check", "--keep"]).arg(&dir).output().unwrap();
    assert!(dev.status.success(), "{}", String::from_utf8_lossy(&dev.stderr));
    let (mut places, mut seen) = (vec![dir], 0);
    while let Some(place) = places.pop() {
        let metadata = std::fs::symlink_metadata(&place).unwrap();
        let mode = metadata.permissions().mode();
        // Sockets of clients are for all users of the host, of whom none gets as far as this directory.
        let open = place.extension().is_some_and(|extension| extension == "sock");
        assert!(open || mode & 0o077 == 0, "{} has the mode {mode:o}", place.display());
        seen += 1;
        if metadata.is_dir() {
            places.extend(std::fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    assert!(seen > 20, "{seen}");
}
