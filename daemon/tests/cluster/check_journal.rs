//! `ipamd check-journal` on a real member's directory: running, stopped, and with an altered byte.

use std::path::Path;
use std::process::{Command, Output};

use crate::support::ask::{allocate, allocate_request, make_pools};
use crate::support::{Cluster, programs};

fn check(dir: &Path) -> Output {
    let mut command = Command::new(programs::ipamd());
    command.env_clear().arg("check-journal").arg("--data-dir").arg(dir).output().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn history_of_a_member_that_is_down_is_checked() {
    let mut cluster = Cluster::up(1).await;
    let client = cluster.ask();
    make_pools(&client).await;
    for number in 0..20 {
        allocate(&client, &allocate_request(&format!("h{number}"), &["web", "web6"])).await.unwrap();
    }
    let dir = cluster.members[0].data_dir.clone();
    let up = check(&dir);
    assert_eq!(up.status.code(), Some(1), "{up:?}");
    assert!(String::from_utf8_lossy(&up.stderr).contains("stop it"), "{up:?}");
    assert!(cluster.stop(0).await.success());

    let whole = check(&dir);
    let printed = String::from_utf8_lossy(&whole.stdout);
    assert_eq!(whole.status.code(), Some(0), "{whole:?}");
    assert!(printed.ends_with("The journal is as it was written.\n"), "{printed}");
    let file = dir.join("journal/open-0000000001");
    let mut content = std::fs::read(&file).unwrap();
    let middle = content.len() / 2;
    content[middle] ^= 1;
    std::fs::write(&file, content).unwrap();
    let damaged = check(&dir);
    assert_eq!(damaged.status.code(), Some(7), "{damaged:?}");
    let printed = String::from_utf8_lossy(&damaged.stdout);
    assert!(printed.contains(&format!("damaged: {}: ", file.display())), "{printed}");

    // The member rebuilds it.
    cluster.start(0);
    cluster.ready().await;
    assert!(cluster.stop(0).await.success());
    assert_eq!(check(&dir).status.code(), Some(0));
}
