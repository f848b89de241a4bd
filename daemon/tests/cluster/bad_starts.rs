//! Members that can't start, with their errors; and a member of another cluster.

use std::path::Path;
use std::process::{Command, Output};

use crate::support::ask::{allocate, allocate_request, make_pools};
use crate::support::member::serve;
use crate::support::{Cluster, until};

/// Runs a member that is to end by itself.
async fn run(mut command: Command) -> Output {
    let mut child = command.spawn().unwrap();
    let ended =
        until("it ends by itself", async || child.try_wait().unwrap().ok_or_else(|| "it runs".to_owned()));
    ended.await;
    child.wait_with_output().unwrap()
}

/// Runs a member that must refuse to start, with this exit code and one message with these words.
#[track_caller]
fn refuses(command: Command, code: i32, words: &[&str]) -> impl Future<Output = ()> {
    let place = std::panic::Location::caller();
    let words: Vec<String> = words.iter().map(ToString::to_string).collect();
    async move {
        let output = run(command).await;
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{place}: {printed}");
        let refusal = printed.find("ipamd: ").map_or("", |at| &printed[at..]);
        for word in words {
            assert!(refusal.contains(&word), "{place}: {word:?} is not in {printed}");
        }
        assert!(!printed.contains("panicked"), "{place}: {printed}");
    }
}

fn serve_with(arguments: &[&str]) -> Command {
    let mut command = serve();
    command.args(arguments);
    command
}

fn with_file(dir: &Path, text: &str) -> Command {
    let path = dir.join("wrong.toml");
    std::fs::write(&path, text).unwrap();
    serve_with(&["--config", path.to_str().unwrap()])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn configurations_that_cant_work_are_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let data = format!("data_dir = {:?}\n", dir.join("data"));
    for (text, words) in [
        ("nmae = \"n1\"", &["wrong.toml", "unknown field `nmae`"][..]),
        ("name = \"n1\"\n[[initial_members]]\nname = \"n1\"", &["missing field `peer`"]),
        ("name = \"n1\"\n[[initial_members]]\npeer = \"127.0.0.1:1\"", &["missing field `name`"]),
        ("name = \"n1\"\n[raft]\nheartbeat = 5", &["unknown field `heartbeat`"]),
        ("name = 7", &["wrong.toml", "invalid type"]),
        ("name = \"n1", &["wrong.toml"]),
        ("name = \"N/1\"", &["name:", "N/1"]),
        ("name = \"n1\"\nclient_listen = \"localhost\"", &["client_listen", "not an address with a port"]),
        ("name = \"n1\"\nclient_listen = \"0.0.0.0:7440\"", &["beyond loopback", "insecure = true"]),
        ("name = \"n1\"\npeer_listen = \"[::]:7441\"", &["peer_listen", "[peer_tls]", "unix:/"]),
        (
            "name = \"n1\"\n[[initial_members]]\nname = \"n2\"\npeer = \"127.0.0.1:1\"",
            &["n1, is not among n2"],
        ),
        ("name = \"n1\"\nlog = \"a=b=c\"", &["log:", "a=b=c"]),
    ] {
        refuses(with_file(dir, &format!("{data}{text}")), 2, words).await;
    }
    refuses(serve_with(&["--config", "/nonexistent.toml"]), 2, &["/nonexistent.toml", "No such file"]).await;
    refuses(serve_with(&["--config", "/dev/null", "--name", "n1", "--member", "n1"]), 2, &["NAME=ADDRESS"])
        .await;
    let file = dir.join("file");
    std::fs::write(&file, "x").unwrap();
    let file = file.to_str().unwrap();
    let ports = ["--client-listen", "127.0.0.1:0"];
    let mut command = serve_with(&["--config", "/dev/null", "--name", "n1", "--data-dir", file]);
    command.args(ports);
    refuses(command, 1, &[file]).await;
    assert!(!dir.join("data").exists(), "nothing was begun");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_or_a_port_in_use_is_refused() {
    let mut cluster = Cluster::calm(3).await;
    make_pools(&cluster.ask()).await;
    let before = cluster.settled().await;
    let (config, peers) = (cluster.config(), cluster.peers());
    // The same member a second time: its port is taken.
    let taken = cluster.members[0].client.to_string();
    let again = cluster.members[0].command(&config, &peers);
    refuses(again, 1, &["client_listen", &taken, "another ipamd"]).await;
    // On ports of its own: its directory is.
    let lone = |client: &str, name: &str, data: &Path| {
        let mut command = serve_with(&["--config", "/dev/null", "--name", name, "--client-listen", client]);
        command.args(["--data-dir", data.to_str().unwrap()]);
        command
    };
    let data = cluster.members[0].data_dir.clone();
    let pid = cluster.members[0].pid().to_string();
    refuses(lone("127.0.0.1:0", "n1", &data), 1, &["another ipamd", &pid, "uses"]).await;
    let elsewhere = cluster.dir.path().join("elsewhere");
    let peer = cluster.members[0].peer_address();
    let mut command = lone("127.0.0.1:0", "n1", &elsewhere);
    command.args(["--peer-listen", &peer]);
    let socket = peer.strip_prefix("unix:").unwrap();
    refuses(command, 1, &["peer_listen", socket, "another process"]).await;
    assert!(!elsewhere.exists(), "nothing was begun");
    // A directory of another member's name.
    cluster.members[2].kill();
    let data = cluster.members[2].data_dir.clone();
    refuses(lone("127.0.0.1:0", "n9", &data), 1, &["belongs to the member \"n3\"", "n9"]).await;
    // The cluster has been unaffected throughout.
    cluster.start(2);
    cluster.ready().await;
    let after = cluster.settled().await;
    assert_eq!((after.id, after.revision, after.term), (before.id, before.revision, before.term));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_with_data_of_another_cluster_disturbs_no_member_and_says_so() {
    let mut ours = Cluster::calm(3).await;
    make_pools(&ours.ask()).await;
    let mut theirs = Cluster::up(3).await;
    make_pools(&theirs.ask()).await;
    theirs.settled().await;
    assert!(theirs.stop(2).await.success());
    let foreign = theirs.shown(0).await.id;
    theirs.kill_all();
    // Our third member gets the other cluster's disk.
    assert!(ours.stop(2).await.success());
    ours.leader().await;
    let before = ours.settled().await;
    assert_ne!(before.id, foreign);
    ours.members[2].data_dir.clone_from(&theirs.members[2].data_dir);
    ours.start(2);
    until("it says whose cluster answers", async || {
        let log = ours.members[2].logged();
        let says = log.contains(&format!("it belongs to cluster {}", before.id));
        if says { Ok(()) } else { Err(log.lines().last().unwrap_or_default().to_owned()) }
    })
    .await;
    assert!(ours.members[2].is_ready().await.is_err());
    assert_eq!(ours.shown(2).await.id, foreign);
    // The cluster continues with the two remaining members, in the same term.
    for round in 0..20 {
        allocate(&ours.at(round % 2), &allocate_request(&format!("h{round}"), &["web"])).await.unwrap();
    }
    let after = ours.shown(0).await;
    assert_eq!((&after.id, after.term), (&before.id, before.term));
    assert_eq!(after.addresses.allocated, 20);
    assert_eq!(ours.shown(2).await.addresses.allocated, 0);
}

/// Kubernetes sets these variables for a Service that is called `ipamd`.
#[tokio::test]
async fn service_links_in_the_environment_do_not_prevent_a_start() {
    let cluster = Cluster::of(1);
    let member = &cluster.members[0];
    let links = [
        ("IPAMD_PORT", "tcp://10.0.0.1:7440"),
        ("IPAMD_SERVICE_HOST", "10.0.0.1"),
        ("IPAMD_SERVICE_PORT", "7440"),
        ("IPAMD_PORT_7440_TCP", "tcp://10.0.0.1:7440"),
        ("IPAMD_PORT_7440_TCP_ADDR", "10.0.0.1"),
        ("IPAMD_LATER", "unknown"),
    ];
    let mut command = member.command(&cluster.config(), &cluster.peers());
    let mut process = command.envs(links).stderr(std::process::Stdio::null()).spawn().unwrap();
    until("it is ready", async || member.is_ready().await).await;
    process.kill().unwrap();
    process.wait().unwrap();
}
