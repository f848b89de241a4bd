//! The real kubectl against the server.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::cluster::{Cluster, LABEL, config_map};
use super::custom::{DEFINITIONS, definition, group, widget};

/// Debian's kubectl, unpacked by `cargo xtask test --only packages`; else that of the path.
fn program() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../target");
    let unpacked = target.unwrap_or(root).join("tools/kubectl/usr/bin/kubectl");
    if unpacked.exists() { unpacked } else { "kubectl".into() }
}

/// Output of a command that succeeds.
fn kubectl(cluster: &Cluster, words: &[&str], input: &str) -> String {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(program());
    command.args(words).arg("--cache-dir").arg(home.path()).env("HOME", home.path());
    // A kubeconfig selects a real cluster already.
    if cluster.own_server().is_some() {
        command.arg("--server").arg(&cluster.url);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| {
        panic!("{}: {error}; first: cargo xtask test --only packages", program().display())
    });
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "kubectl {words:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_applies_waits_for_prints_and_deletes_a_custom_resource() {
    let mut cluster = Cluster::start().await;
    let group = group();
    let mut definition =
        definition(&group, json!({"type": "object", "properties": {"size": {"type": "integer"}}}));
    definition["spec"]["versions"][0]["additionalPrinterColumns"] =
        json!([{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]);
    definition["metadata"]["labels"] = json!({LABEL: "true"});
    let resource = format!("crd/widgets.{group}");
    let apply =
        |cluster: &Cluster, object: &Value| kubectl(cluster, &["apply", "-f", "-"], &object.to_string());
    cluster.remove_at_end(&format!("{}/widgets.{group}", DEFINITIONS));
    assert!(apply(&cluster, &definition).ends_with(" created\n"));
    kubectl(&cluster, &["wait", "--for=condition=Established", &resource, "--timeout=4m"], "");
    let mut object = widget(&group, "one", json!({"size": 3}));
    object["metadata"]["namespace"] = json!(cluster.namespace);
    assert!(apply(&cluster, &object).ends_with(" created\n"));
    assert!(apply(&cluster, &object).ends_with(" unchanged\n"));
    object["spec"]["size"] = json!(4);
    assert!(apply(&cluster, &object).ends_with(" configured\n"));
    let namespace = ["-n", &cluster.namespace];
    let plural = format!("widgets.{group}");
    let printed = kubectl(&cluster, &[&["get", &plural], &namespace[..]].concat(), "");
    let words: Vec<&str> = printed.split_whitespace().collect();
    assert_eq!(words, ["NAME", "SIZE", "one", "4"]);
    // A second apply of a built-in kind sends a strategic merge patch.
    let mut map = config_map("map");
    map["metadata"]["namespace"] = json!(cluster.namespace);
    assert!(apply(&cluster, &map).ends_with(" created\n"));
    map["data"] = json!({"other": "1"});
    assert!(apply(&cluster, &map).ends_with(" configured\n"));
    let path = format!("{}/map", cluster.collection("v1/configmaps"));
    assert_eq!(cluster.get(&path).await.expect(200)["data"], json!({"other": "1"}));
    assert!(
        kubectl(&cluster, &[&["get", "configmap", "map"], &namespace[..]].concat(), "").starts_with("NAME ")
    );
    kubectl(&cluster, &[&["delete", &plural, "one", "--timeout=4m"], &namespace[..]].concat(), "");
    kubectl(&cluster, &["delete", &resource, "--timeout=4m"], "");
    let gone = format!("{}/{}", DEFINITIONS, plural);
    cluster.until_gone(&gone).await;
}
