//! The program under the name by which kubectl finds its plugin `ipam`.

#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::os::unix::fs::symlink;
use std::process::{Command, Output};

/// Runs the plugin as kubectl does: by its path, with the words after `kubectl ipam`.
fn kubectl_ipam(words: &[&str]) -> Output {
    let dir = tempfile::tempdir().unwrap();
    let plugin = dir.path().join("kubectl-ipam");
    symlink(env!("CARGO_BIN_EXE_ipamctl"), &plugin).unwrap();
    Command::new(plugin).args(words).env_clear().output().unwrap()
}

#[test]
fn the_plugin_speaks_of_itself_as_kubectl_does() {
    let help = kubectl_ipam(&["--help"]);
    let text = String::from_utf8(help.stdout).unwrap();
    assert!(help.status.success() && text.contains("Usage: kubectl ipam [OPTIONS] <COMMAND>"), "{text}");
    assert!(text.contains("\n  kubectl ipam who-has 10.10.0.77"), "{text}");
    assert!(!text.contains("ipamctl "), "{text}");
    let nested = String::from_utf8(kubectl_ipam(&["pool", "create", "-h"]).stdout).unwrap();
    assert!(nested.contains("Usage: kubectl ipam pool create [OPTIONS]"), "{nested}");
    let wrong = kubectl_ipam(&["pool", "create"]);
    let text = String::from_utf8(wrong.stderr).unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text.contains("Usage: kubectl ipam pool create"), "{text}");
}

#[test]
fn the_plugin_does_what_the_command_does() {
    let dir = tempfile::tempdir().unwrap();
    let ca = dir.path().join("ca");
    let done = kubectl_ipam(&["cluster", "ca", "init", ca.to_str().unwrap()]);
    assert!(done.status.success() && ca.join("ca.crt").exists(), "{done:?}");
}
