//! Files that only their owner may read, and files that are not the daemon's to remove.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;

use crate::cluster::command_line::ipamctl;
use crate::support::ask::{allocate, allocate_request, make_pools};
use crate::support::{Cluster, programs, until};

/// Asserts that other users can't access a file below a directory; returns the number of files.
fn is_private(place: &Path) -> usize {
    let metadata = fs::symlink_metadata(place).unwrap();
    let (mode, kind) = (metadata.permissions().mode() & 0o777, metadata.file_type());
    let wanted = if kind.is_dir() { 0o700 } else { 0o600 };
    assert_eq!(mode, wanted, "{} has the mode {mode:o}", place.display());
    if !kind.is_dir() {
        return 1;
    }
    fs::read_dir(place).unwrap().map(|entry| is_private(&entry.unwrap().path())).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_that_a_member_writes_is_its_owners_alone() {
    let timing = "heartbeat_ms = 100\nelection_min_ms = 600\nelection_max_ms = 1000";
    let cluster = Cluster::of_with(1, &format!("{timing}\nsnapshot_every_entries = 20"));
    let mut cluster = cluster.all_up().await;
    make_pools(&cluster.ask()).await;
    let data = cluster.members[0].data_dir.clone();
    let mut number = 0;
    until("there is a snapshot", async || {
        number += 1;
        allocate(&cluster.ask(), &allocate_request(&format!("h{number}"), &["web"])).await.unwrap();
        let there = data.join("snapshot").join("current").exists();
        if there { Ok(()) } else { Err(format!("none after {number} allocations")) }
    })
    .await;
    assert!(is_private(&data) > 5);
    // Its socket for clients is open to all users: the kernel identifies the caller.
    let socket = fs::metadata(cluster.members[0].socket()).unwrap();
    assert!(socket.file_type().is_socket());
    assert_eq!(socket.permissions().mode() & 0o777, 0o666);
    let peers = cluster.members[0].peer_address();
    assert!(is_private(Path::new(peers.strip_prefix("unix:").unwrap()).parent().unwrap()) > 0);

    let dir = cluster.dir.path().to_owned();
    let [backup, recovered] = ["backup.ipamd", "recovered.ipamd"].map(|name| dir.join(name));
    ipamctl(&cluster.urls(), &format!("cluster backup {}", backup.display())).await.ends(0);
    is_private(&backup);
    let id = cluster.shown(0).await.id;
    assert!(cluster.stop(0).await.success());
    is_private(&data);
    let run = |arguments: &[&str]| {
        let output = Command::new(programs::ipamd()).args(arguments).env_clear().output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let (data, recovered) = (data.to_str().unwrap(), recovered.to_str().unwrap());
    run(&["recover", recovered, "--data-dir", data, "--confirm", &id]);
    is_private(Path::new(recovered));
    let restored = dir.join("restored").join("deep");
    run(&["restore", backup.to_str().unwrap(), "--data-dir", restored.to_str().unwrap()]);
    assert!(is_private(&dir.join("restored")) > 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_socket_makes_way_for_the_socket_of_clients() {
    let mut cluster = Cluster::of(1);
    let place = cluster.members[0].socket();
    let target = cluster.dir.path().join("target");
    fs::write(&target, "precious").unwrap();
    for kind in ["a file", "a directory", "a symbolic link"] {
        match kind {
            "a file" => fs::write(&place, "precious").unwrap(),
            "a directory" => fs::create_dir(&place).unwrap(),
            _ => std::os::unix::fs::symlink(&target, &place).unwrap(),
        }
        cluster.start(0);
        assert!(!cluster.members[0].exit().await.success());
        let log = cluster.members[0].logged();
        let printed = log.lines().last().unwrap_or_default();
        assert!(
            printed.contains("client_socket") && printed.contains(kind) && printed.contains("move it away"),
            "{printed}"
        );
        assert!(fs::symlink_metadata(&place).is_ok(), "{kind} is still there");
        match kind {
            "a directory" => fs::remove_dir(&place).unwrap(),
            _ => fs::remove_file(&place).unwrap(),
        }
    }
    assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
    // One that a dead process left is replaced.
    cluster.start(0);
    cluster.ready().await;
    cluster.members[0].kill();
    assert!(fs::metadata(&place).unwrap().file_type().is_socket());
    cluster.start(0);
    cluster.ready().await;
}
