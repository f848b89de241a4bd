//! Restoring a backup: a new cluster with all of its state, which allocates after its confirmation.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ipam_api::Code;
use ipam_api::client::Call;
use ipam_api::cluster::{Cluster as Shown, Epoch};
use ipam_api::resource::Allocation;
use serde_json::Value;

use super::{Load, names_in};
use crate::cluster::command_line::ipamctl;
use crate::support::ask::{addresses, allocate, allocate_request, allocations, get, make_pools, refused};
use crate::support::{Cluster, programs, until};

/// `ipamd restore`.
fn restore(file: &Path, dir: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(programs::ipamd());
    command.arg("restore").arg(file).arg("--data-dir").arg(dir).args(more).env_clear();
    command.output().unwrap()
}

#[track_caller]
fn restores(file: &Path, dir: &Path) -> String {
    let output = restore(file, dir, &[]);
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{printed}");
    printed
}

#[track_caller]
fn refuses(file: &Path, dir: &Path, more: &[&str], words: &[&str]) {
    let output = restore(file, dir, more);
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{printed}");
    for word in words {
        assert!(printed.contains(word), "{word:?} is not in {printed}");
    }
    assert!(!printed.contains("panicked"), "{printed}");
}

/// Takes a backup of a cluster that has settled; what is in it.
async fn back_up(cluster: &Cluster, file: &Path) -> (Shown, Vec<Allocation>) {
    let before = cluster.settled().await;
    let printed =
        ipamctl(&cluster.urls(), &format!("cluster backup {} -o json", file.display())).await.ends(0).json();
    // Not the digest: the leader may have moved log time meanwhile. Every change raises the revision.
    assert_eq!(printed["backup"]["revision"].as_u64(), Some(before.revision));
    assert!(printed["backup"]["digest"].is_string());
    (before, allocations(&cluster.ask()).await)
}

fn ids(allocations: &[Allocation]) -> Vec<(u64, String)> {
    allocations.iter().map(|one| (one.id, one.address.to_string())).collect()
}

async fn epoch(cluster: &Cluster) -> Epoch {
    get(&cluster.ask(), "/v1/cluster/epoch").await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_cluster_knows_everything_and_gives_nothing_before_it_is_confirmed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("prod.ipamd");
    let mut old = Cluster::up(3).await;
    make_pools(&old.ask()).await;
    assert!(epoch(&old).await.confirmed);
    let load = Load::on((0..6).map(|number| old.at(number % 3)));
    until("a thousand were given", async || {
        (load.given() >= 1000).then_some(()).ok_or_else(|| load.given().to_string())
    })
    .await;
    load.stop().await;
    let (before, held) = back_up(&old, &file).await;
    // What comes now is lost with the old cluster.
    let late = allocate(&old.ask(), &allocate_request("late", &["web"])).await.unwrap();

    // Not into the directory of a member, running or not.
    let (used, pid) = (old.members[0].data_dir.clone(), old.members[0].pid().to_string());
    refuses(&file, &used, &[], &["another ipamd", &pid]);
    old.kill_all();
    refuses(&file, &used, &[], &["isn't empty"]);

    let mut new = Cluster::of(3);
    // Not the first one by name: the member with the state founds.
    let printed = restores(&file, &new.members[1].data_dir);
    assert!(printed.contains("epoch 2") && printed.contains(&before.revision.to_string()), "{printed}");
    refuses(&file, &new.members[1].data_dir, &[], &["isn't empty"]);
    new.start_all();
    new.ready().await;
    let after = new.settled().await;
    assert_ne!(after.id, before.id);
    assert_eq!(after.epoch, 2);
    assert!(after.revision > 2 << 40 && before.revision < 2 << 40);
    assert_eq!(after.addresses, before.addresses);
    let client = new.ask();
    assert_eq!(ids(&allocations(&client).await), ids(&held));

    let waits = epoch(&new).await;
    assert_eq!((waits.confirmed, waits.from_revision), (false, Some(before.revision)));
    let names: Vec<&str> = waits.waiting.iter().map(|name| name.as_str()).collect();
    assert_eq!(names, ["web", "web6"]);
    let detail = refused(allocate(&client, &allocate_request("new", &["web"])).await, Code::EpochUnconfirmed);
    assert!(detail.contains("web is not confirmed since the restore"), "{detail}");
    // The same request again is answered from what is held.
    let again = allocate(&client, &allocate_request("load-0-0", &["web"])).await.unwrap();
    assert!(again.repeated);
    // All three have the whole history, the beginning of the epoch in it.
    for at in 0..3 {
        until("it has all of the history", async || {
            let page: Result<Value, _> = get(&new.at(at), "/v1/events?limit=1&consistency=stale").await;
            page.map(drop).map_err(|problem| problem.to_string())
        })
        .await;
    }
    let newest: Value = get(&client, "/v1/events?kind=epoch").await.unwrap();
    assert_eq!(newest["items"][0]["type"], "epoch.begun", "{newest}");

    let servers = new.urls();
    let shown = ipamctl(&servers, "cluster epoch").await.ends(0).stdout;
    assert!(shown.contains("confirmed   no") && shown.contains("web,web6"), "{shown}");
    let unsaid = ipamctl(&servers, "cluster epoch confirm web").await.ends(2);
    assert!(unsaid.stderr.contains(&after.id), "{unsaid:?}");
    ipamctl(&servers, "cluster epoch confirm web --confirm other").await.ends(2);
    assert!(!epoch(&new).await.confirmed);
    let one = format!("cluster epoch confirm web --confirm {}", after.id);
    let printed = ipamctl(&servers, &one).await.ends(0).stderr;
    assert!(printed.contains("1 pool confirmed") && printed.contains("1 pool still wait"), "{printed}");
    let given = allocate(&client, &allocate_request("new", &["web"])).await.unwrap();
    assert!(given.interfaces[0].addresses[0].allocation > 2 << 40);
    // An address that the old cluster allocated after the backup is reused: the operator has confirmed that.
    assert_eq!(addresses(&given), addresses(&late));
    refused(allocate(&client, &allocate_request("new6", &["web6"])).await, Code::EpochUnconfirmed);
    ipamctl(&servers, &format!("cluster epoch confirm --all --confirm {}", after.id)).await.ends(0);
    allocate(&client, &allocate_request("new6", &["web6"])).await.unwrap();
    assert!(epoch(&new).await.confirmed);
    let shown = ipamctl(&servers, "cluster epoch").await.ends(0).stdout;
    assert!(shown.contains("confirmed   yes at"), "{shown}");
    // It is an ordinary cluster: all of it survives another restore.
    let settled = new.settled().await;
    new.kill_all();
    new.start_all();
    new.ready().await;
    let again = new.settled().await;
    // Not the digest: another leadership has begun.
    let told = |shown: &Shown| (shown.id.clone(), shown.revision, shown.addresses);
    assert_eq!(told(&again), told(&settled));
    for name in ["restored", "restored.json", "restore-unfinished"] {
        assert!(!names_in(&new.members[1].data_dir).contains(&name.to_owned()), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_backup_on_every_member_is_one_cluster_and_two_backups_are_none() {
    let folder = tempfile::tempdir().unwrap();
    let (file, other) = (folder.path().join("a.ipamd"), folder.path().join("b.ipamd"));
    let mut old = Cluster::up(1).await;
    make_pools(&old.ask()).await;
    allocate(&old.ask(), &allocate_request("one", &["web"])).await.unwrap();
    back_up(&old, &file).await;
    allocate(&old.ask(), &allocate_request("two", &["web"])).await.unwrap();
    back_up(&old, &other).await;
    old.kill_all();
    let mut new = Cluster::of(3);
    for member in &new.members {
        restores(&file, &member.data_dir);
    }
    new.start_all();
    new.ready().await;
    assert_eq!(new.settled().await.addresses.allocated, 1);
    // A wiped disk that was restored again isn't a member: the cluster isn't overwritten.
    new.members[2].kill();
    new.wipe(2);
    restores(&file, &new.members[2].data_dir);
    new.start(2);
    until("it says why it waits", async || {
        let log = new.members[2].logged();
        if log.contains("data directory was replaced") { Ok(()) } else { Err(new.members[2].tail()) }
    })
    .await;
    assert!(new.members[2].is_ready().await.is_err());
    // Two different states never become one cluster.
    let mut mixed = Cluster::of(3);
    restores(&file, &mixed.members[0].data_dir);
    restores(&other, &mixed.members[2].data_dir);
    mixed.start_all();
    until("all say what is wrong", async || {
        let says = |at: usize| mixed.members[at].logged().contains("one state to begin with");
        if (0..3).all(says) { Ok(()) } else { Err(mixed.members[1].tail()) }
    })
    .await;
    assert!(mixed.members[0].is_ready().await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_no_backup_is_refused_without_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let file: PathBuf = folder.path().join("a.ipamd");
    let cluster = Cluster::up(1).await;
    make_pools(&cluster.ask()).await;
    let bytes = cluster.at(0).send(Call::get("/v1/cluster/backup")).await.unwrap().body;
    let (dir, wrong) = (folder.path().join("data"), folder.path().join("wrong.ipamd"));
    let mut flipped = bytes.clone();
    flipped[bytes.len() / 2] ^= 1;
    let mut newer = bytes.clone();
    newer[7] = 9;
    for (content, word) in [
        (&flipped[..], "damaged at byte"),
        (&bytes[..bytes.len() - 40], "ends too early"),
        (&newer[..], "version 9"),
        (b"#!/bin/sh\n", "no backup"),
    ] {
        std::fs::write(&wrong, content).unwrap();
        refuses(&wrong, &dir, &[], &["wrong.ipamd", word]);
        assert!(!dir.exists(), "something was begun");
    }
    refuses(Path::new("/nowhere"), &dir, &[], &["/nowhere"]);
    std::fs::write(&file, &bytes).unwrap();
    refuses(&file, &dir, &["--epoch", "1"], &["can't follow on epoch 1"]);
    assert!(!dir.exists(), "something was begun");
    // A number of one's own; and what was broken off isn't served.
    let output = restore(&file, &dir, &["--epoch", "7"]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("epoch 7"));
    std::fs::write(dir.join("restore-unfinished"), "").unwrap();
    let mut again = Cluster::of(1);
    again.members[0].data_dir = dir.clone();
    again.start(0);
    assert!(!again.members[0].exit().await.success());
    assert!(again.members[0].logged().contains("was broken off"), "{}", again.members[0].logged());
    std::fs::remove_file(dir.join("restore-unfinished")).unwrap();
    again.start(0);
    again.ready().await;
    assert_eq!(epoch(&again).await.epoch, 7);
}
