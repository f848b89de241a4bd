//! A majority that is lost for good: what the survivor has begins another cluster.

use std::process::{Command, Output};

use ipam_api::Code;

use super::{Load, names_in};
use crate::cluster::command_line::ipamctl;
use crate::support::ask::{allocate, allocate_request, allocations, make_pools, refused};
use crate::support::{Cluster, programs, until};

/// Runs `ipamd` with these arguments.
fn ipamd(line: &str) -> Output {
    Command::new(programs::ipamd()).args(line.split_whitespace()).env_clear().output().unwrap()
}

#[track_caller]
fn done(line: &str) -> String {
    let output = ipamd(line);
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{printed}");
    printed
}

#[track_caller]
fn refuses(line: &str, words: &[&str]) {
    let output = ipamd(line);
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{printed}");
    for word in words {
        assert!(printed.contains(word), "{word:?} is not in {printed}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_state_of_the_survivor_is_restored_and_waits_for_confirmation() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("survivor.ipamd");
    let mut old = Cluster::up(3).await;
    make_pools(&old.ask()).await;
    let load = Load::on((0..4).map(|number| old.at(number % 3)));
    until("there was some load", async || {
        (load.given() >= 300).then_some(()).ok_or_else(|| load.given().to_string())
    })
    .await;
    let given = load.stop().await;
    // The survivor has applied all of it; then the two others are lost.
    let before = old.settled().await;
    let survivor = old.follower().await;
    let data = old.members[survivor].data_dir.clone();
    let recover = format!("recover {} --data-dir {}", file.display(), data.display());
    let confirmed = format!("{recover} --confirm {}", before.id);
    refuses(&confirmed, &["another ipamd", &old.members[survivor].pid().to_string()]);
    old.kill_all();
    for at in (0..3).filter(|at| *at != survivor) {
        old.wipe(at);
    }
    // The command needs the cluster's id as confirmation.
    refuses(&recover, &[&format!("--confirm {}", before.id), "never start any of the old ones"]);
    refuses(&format!("{recover} --confirm other"), &["is not the cluster's id"]);
    refuses(&format!("recover {0} --data-dir {0} --confirm x", folder.path().display()), &["no member"]);
    let printed = done(&confirmed);
    assert!(printed.contains(&format!("{given} allocations")), "{printed}");
    refuses(&confirmed, &["is there already"]);
    assert_eq!(names_in(folder.path()), ["survivor.ipamd"]);
    // It is a backup like any other.
    ipamctl(&[], &format!("cluster backup --verify {}", file.display())).await.ends(0);

    let mut new = Cluster::of(3);
    done(&format!("restore {} --data-dir {}", file.display(), new.members[0].data_dir.display()));
    new.start_all();
    new.ready().await;
    let after = new.settled().await;
    assert_ne!(after.id, before.id);
    assert_eq!((after.epoch, &after.addresses), (2, &before.addresses));
    let held = allocations(&new.ask()).await;
    for number in 0..4 {
        let name = format!("load-{number}-0");
        assert!(held.iter().any(|one| one.endpoint.name.as_str() == name), "{name} is lost");
    }
    refused(allocate(&new.ask(), &allocate_request("new", &["web"])).await, Code::EpochUnconfirmed);
    let confirm = format!("cluster epoch confirm --all --confirm {}", after.id);
    ipamctl(&new.urls(), &confirm).await.ends(0);
    allocate(&new.ask(), &allocate_request("new", &["web"])).await.unwrap();
    // The survivor itself stays out: its disk belongs to the cluster that is no more.
    new.settled().await;
    new.kill_all();
    // And once more, from the second epoch: yet another one.
    let (again, third) = (folder.path().join("again.ipamd"), folder.path().join("third"));
    let data = new.members[2].data_dir.display().to_string();
    done(&format!("recover {} --data-dir {data} --confirm {}", again.display(), after.id));
    let printed = done(&format!("restore {} --data-dir {}", again.display(), third.display()));
    assert!(printed.contains("epoch 3"), "{printed}");
}
