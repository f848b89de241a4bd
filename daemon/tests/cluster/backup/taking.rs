//! Taking a backup: under load, on a full disk, and with a client that disconnects.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;

use ipam_api::Code;
use ipam_api::client::{Call, Client, Options};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;

use super::{Load, fatten, names_in};
use crate::cluster::command_line::ipamctl;
use crate::support::ask::{get, make_pools, refused};
use crate::support::raw::request;
use crate::support::{Cluster, LONG, programs, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_is_whole_while_addresses_are_given_and_is_never_written_over() {
    let cluster = Cluster::up(3).await;
    make_pools(&cluster.ask()).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("prod.ipamd");
    let servers = cluster.urls();
    let load = Load::on((0..8).map(|number| cluster.at(number % 3)));
    let backup = format!("cluster backup {} -o json", file.display());
    until("there is some load", async || {
        (load.given() >= 500).then_some(()).ok_or_else(|| load.given().to_string())
    })
    .await;
    let before = load.given();
    let printed = ipamctl(&servers, &backup).await.ends(0).json();
    let after = load.given();
    until("a thousand were given", async || {
        (load.given() >= 1000).then_some(()).ok_or_else(|| load.given().to_string())
    })
    .await;
    load.stop().await;
    // All that was acknowledged before it began is in it, and it is of one moment before it ended.
    let allocations = usize::try_from(printed["backup"]["counts"]["allocations"].as_u64().unwrap()).unwrap();
    assert!((before..=after + 8).contains(&allocations), "{before} {allocations} {after}");
    assert_eq!(printed["bytes"], file.metadata().unwrap().len());
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);

    let verify = format!("cluster backup --verify {}", file.display());
    let verified = ipamctl(&["http://127.0.0.1:1".to_owned()], &format!("{verify} -o json")).await.ends(0);
    assert_eq!(verified.json(), printed);
    let shown = ipamctl(&[], &verify).await.ends(0).stdout;
    for word in [printed["backup"]["cluster"].as_str().unwrap(), "epoch       1", "whole       yes"] {
        assert!(shown.contains(word), "{word}: {shown}");
    }

    let bytes = std::fs::read(&file).unwrap();
    let again = ipamctl(&servers, &backup).await.ends(2);
    assert!(again.stderr.contains("already exists") && again.stderr.contains("--force"), "{again:?}");
    assert!(std::fs::read(&file).unwrap() == bytes, "it was touched");
    ipamctl(&servers, &format!("{backup} --force --without-history")).await.ends(0);
    assert!(std::fs::read(&file).unwrap() != bytes, "it was not replaced");
    assert_eq!(names_in(folder.path()), ["prod.ipamd"]);

    for at in [0, 7, 8, 100, bytes.len() / 2, bytes.len() - 1] {
        let mut flipped = bytes.clone();
        flipped[at] ^= 4;
        std::fs::write(&file, flipped).unwrap();
        let found = ipamctl(&[], &verify).await.ends(7);
        assert!(found.stderr.contains("backup"), "{at}: {found:?}");
    }
    std::fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
    assert!(ipamctl(&[], &verify).await.ends(7).stderr.contains("ends too early"));
    let metrics = cluster.at(0).send(Call::get("/metrics")).await.unwrap().body;
    assert!(String::from_utf8(metrics).unwrap().contains("ipamd_backup_last_success_timestamp_seconds"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_backup_at_a_time_and_a_full_disk_leaves_nothing() {
    let cluster = Cluster::up(1).await;
    fatten(&cluster.ask()).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("b.ipamd");
    // A client that requests a backup and reads nothing of it.
    let mut slow = TcpStream::connect(cluster.members[0].client).await.unwrap();
    slow.write_all(&request("GET", "/v1/cluster/backup", &[], &[])).await.unwrap();
    let mut first = [0; 12];
    slow.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    let line = format!("cluster backup {}", file.display());
    let second = ipamctl(&cluster.urls(), &line).await.ends(5);
    assert!(second.stderr.contains("is writing a backup already"), "{second:?}");
    assert_eq!(names_in(folder.path()), [""; 0]);
    drop(slow);
    written_once_the_member_is_free(&cluster, &line).await;
    std::fs::remove_file(&file).unwrap();

    // The same into a file system that is far too small. It ends with its mount namespace.
    let script = format!(
        "mount -t tmpfs -o size=1m none {dir} && {ipamctl} {line}; code=$?; ls -A {dir}; exit $code",
        dir = folder.path().display(),
        ipamctl = programs::ipamctl().display(),
    );
    let full = Command::new("unshare")
        .args(["--mount", "--map-root-user", "sh", "-c", &script])
        .env("IPAM_SERVERS", cluster.urls().join(","))
        .output()
        .await
        .unwrap();
    let (stdout, stderr) = (String::from_utf8(full.stdout).unwrap(), String::from_utf8(full.stderr).unwrap());
    assert_eq!(full.status.code(), Some(5), "{stderr}");
    assert!(stderr.contains("No space left") && stderr.contains("storage full"), "{stderr}");
    assert_eq!(stdout, "", "something was left behind");
    // With free space again it works.
    written_once_the_member_is_free(&cluster, &line).await;
}

/// Run `line` until the member has noticed that the client of the backup before is gone.
async fn written_once_the_member_is_free(cluster: &Cluster, line: &str) {
    until("the next one may be written", async || {
        let printed = ipamctl(&cluster.urls(), line).await;
        if printed.stderr.contains("already") { Err(printed.stderr) } else { Ok(printed.ends(0)) }
    })
    .await;
}

/// Server that sends `body` and then stalls, or closes the connection.
async fn pretend(body: Vec<u8>, hangs_up: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let body = body.clone();
            tokio::spawn(async move {
                let mut head = vec![0; 4096];
                let _ = stream.read(&mut head).await;
                let length = body.len() + if hangs_up { 0 } else { 1000 };
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
                let _ = stream.write_all(&[head.as_bytes(), &body].concat()).await;
                if !hangs_up {
                    std::future::pending::<()>().await;
                }
            });
        }
    });
    server
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_backup_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("b.ipamd");
    let line = format!("cluster backup {}", file.display());
    let half = pretend(b"IPAMBKP\x01H".to_vec(), true).await;
    let broken = ipamctl(&[half], &line).await.ends(5);
    assert!(broken.stderr.contains("not a complete backup"), "{broken:?}");
    assert_eq!(names_in(folder.path()), [""; 0]);

    let stalled = pretend(b"IPAMBKP\x01H".to_vec(), false).await;
    let child = Command::new(programs::ipamctl())
        .args(line.split_whitespace())
        .env_clear()
        .env("IPAM_SERVERS", stalled)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    until("something has come", async || {
        let aside = names_in(folder.path()).pop().ok_or("nothing is there")?;
        let length = folder.path().join(aside).metadata().map_or(0, |metadata| metadata.len());
        if length > 0 { Ok(()) } else { Err("it is empty".to_owned()) }
    })
    .await;
    interrupt(&child);
    let ended = child.wait_with_output().await.unwrap();
    assert_eq!(ended.status.code(), Some(130));
    let printed = String::from_utf8(ended.stderr).unwrap();
    assert!(printed.contains("was not written"), "{printed}");
    assert_eq!(names_in(folder.path()), [""; 0]);
}

fn interrupt(child: &tokio::process::Child) {
    use rustix::process::{Pid, Signal, kill_process};
    let pid = Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_administrators_take_backups() {
    let cluster = Cluster::up(1).await;
    let admin = cluster.ask();
    for (role, allowed) in [("admin", true), ("operator", false), ("viewer", false)] {
        let token = json!({"name": role, "role": role});
        let made: serde_json::Value =
            admin.call(Call::post("/v1/tokens").json(&token).unwrap().within(LONG)).await.unwrap();
        let client = with_token(&cluster, made["secret"].as_str().unwrap());
        let answer = client.send(Call::get("/v1/cluster/backup").within(LONG)).await;
        if allowed {
            assert!(answer.unwrap().body.starts_with(b"IPAMBKP\x01"));
            let odd = get::<serde_json::Value>(&client, "/v1/cluster/backup?history=perhaps").await;
            refused(odd, Code::InvalidFilter);
        } else {
            refused(answer.map(|answer| answer.status), Code::Forbidden);
        }
    }
}

/// A client of a cluster with a token.
fn with_token(cluster: &Cluster, secret: &str) -> Client {
    let file: &Path = &cluster.dir.path().join("token");
    std::fs::write(file, secret).unwrap();
    let options = Options { token_file: Some(file.to_owned()), ..Options::default() };
    Client::with(&cluster.urls(), &options).unwrap()
}
