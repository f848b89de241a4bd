//! Tests of the mini kubelet with a plugin of a few lines. Other tests use the container runtimes of Debian.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "these are tests")]

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

/// Runs the mini kubelet with orders for a plugin.
fn run(arguments: &[&str], orders: &[Value]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mini-kubelet"));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    orders.iter().for_each(|order| writeln!(input, "{order}").unwrap());
    drop(input);
    child.wait_with_output().unwrap()
}

fn write_script(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_plugin_gets_what_containerd_gives_it() {
    let dir = tempfile::tempdir().unwrap();
    let (plugin, network) = (dir.path().join("plugin"), dir.path().join("network"));
    let calls = dir.path().join("calls");
    let script = format!(
        "#!/bin/sh\necho \"$CNI_COMMAND $CNI_CONTAINERID $CNI_ARGS $(cat)\" >> {}\n\
         echo '{{\"ips\": [{{\"address\": \"10.1.0.7/24\"}}]}}'\n",
        calls.display()
    );
    write_script(&plugin, &script);
    std::fs::write(&network, r#"{"name":"lan"}"#).unwrap();
    let arguments = ["--plugin", plugin.to_str().unwrap(), "--network", network.to_str().unwrap()];
    let pod = json!({"namespace": "shop", "name": "web-0", "uid": "u1", "annotations": {"a": "b"}});
    let output = run(&arguments, &[json!({"id": 7, "create": pod})]);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let [id, addresses, sandbox] = ["id", "addresses", "sandbox"].map(|key| answer.get(key).unwrap());
    assert_eq!((id, addresses, sandbox), (&json!(7), &json!(["10.1.0.7"]), &json!("web-0-u1")));
    let calls = std::fs::read_to_string(calls).unwrap();
    for said in [
        "ADD web-0-u1 ",
        "K8S_POD_NAME=web-0",
        "K8S_POD_UID=u1",
        "IgnoreUnknown=1",
        r#""runtimeConfig":{"io.kubernetes.cri.pod-annotations":{"a":"b"}}"#,
    ] {
        assert!(calls.contains(said), "{said}: {calls}");
    }
}

#[test]
fn a_failure_is_answered_with_its_reason() {
    let dir = tempfile::tempdir().unwrap();
    let (plugin, network) = (dir.path().join("plugin"), dir.path().join("network"));
    write_script(&plugin, "#!/bin/sh\necho '{\"code\": 11}'\nexit 1\n");
    std::fs::write(&network, "{}").unwrap();
    let arguments = ["--plugin", plugin.to_str().unwrap(), "--network", network.to_str().unwrap()];
    let pod = json!({"namespace": "shop", "name": "web-0", "uid": "u1"});
    let output = run(&arguments, &[json!({"id": 1, "delete": pod})]);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(answer.get("error").unwrap().as_str().unwrap().contains(r#"DEL: {"code": 11}"#), "{answer}");
    let refused = run(&arguments, &[json!({"id": 1, "restart": pod})]);
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("restart"), "{refused:?}");
    assert!(!run(&[], &[]).status.success());
}
