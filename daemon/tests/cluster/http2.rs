//! HTTP/2 as another client speaks it: curl.

use std::path::Path;
use std::process::Stdio;

use ipam_api::client::Call;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

use crate::support::ask::put;
use crate::support::tls::Holder;
use crate::support::{Cluster, LONG, programs};

fn curl(words: &[&str]) -> Command {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--no-buffer"]).args(words).kill_on_drop(true);
    command
}

/// Output of a run of curl that succeeds.
async fn output(words: &[&str]) -> String {
    let output = timeout(LONG, curl(words).output()).await.expect("curl does not end").unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_and_backups_are_streamed_over_http2() {
    let cluster = Cluster::up(1).await;
    let member = &cluster.members[0];
    let url = |path: &str| format!("{}{path}", member.url());
    let words = ["--http2-prior-knowledge", "--include", "--header", "accept: text/event-stream"];
    let events = url("/v1/events?after=0");
    let mut stream = curl(&[&words[..], &[&events]].concat()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(stream.stdout.take().unwrap()).lines();
    let mut line_with = async |part: &str| {
        let reading = async {
            loop {
                let line = lines.next_line().await.unwrap().expect("the stream goes on");
                if line.contains(part) {
                    return line;
                }
            }
        };
        timeout(LONG, reading).await.unwrap_or_else(|_| panic!("{part} does not come"))
    };
    assert_eq!(line_with("HTTP").await.trim_end(), "HTTP/2 200");
    // Each event comes when it happens, and not with the end of the stream.
    for name in ["first", "second"] {
        put(&cluster.ask(), "networks", json!({"name": name})).await;
        line_with(&format!("{name}\"")).await;
    }
    stream.kill().await.unwrap();

    let file = cluster.dir.path().join("backup");
    let file = file.to_str().unwrap();
    let written = "%{http_version} %{http_code}";
    let backup = url("/v1/cluster/backup");
    let words = ["--http2-prior-knowledge", "--output", file, "--write-out", written, &backup];
    assert_eq!(output(&words).await, "2 200");
    let verified = Command::new(programs::ipamctl())
        .args(["cluster", "backup", "--verify", file])
        .output()
        .await
        .unwrap();
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
    // Without prior knowledge nothing changes for a client.
    assert_eq!(output(&["--output", "/dev/null", "--write-out", written, &url("/readyz")]).await, "1.1 200");
    let socket = member.socket();
    let words = ["--http2-prior-knowledge", "--unix-socket", socket.to_str().unwrap()];
    let more = ["--output", "/dev/null", "--write-out", written, "http://localhost/readyz"];
    assert_eq!(output(&[&words[..], &more].concat()).await, "2 200");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_clients_get_http2_if_they_know_it_and_keep_their_names() {
    let (cluster, ca) = Cluster::secure(1);
    let cluster = cluster.all_up().await;
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let Holder { ca, certificate, key } = ca.node("default", "worker-3");
    let (ca, certificate, key) = (path(&ca), path(&certificate), path(&key));
    let url = format!("{}/v1/networks", cluster.members[0].url());
    let words = ["--cacert", &ca, "--cert", &certificate, "--key", &key, "--write-out", " %{http_version}"];
    for (flag, version) in [("--http2", "2"), ("--http1.1", "1.1")] {
        let answer = output(&[&words[..], &[flag, &url]].concat()).await;
        assert!(answer.ends_with(&format!(" {version}")), "{answer}");
    }
    // Our own client goes on as before.
    cluster.at(0).send(Call::get("/readyz").within(LONG)).await.unwrap();
}
