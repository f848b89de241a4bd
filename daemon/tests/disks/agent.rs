//! Full disk below the journal of a node's agent.

use std::fs;
use std::os::unix::fs::symlink;

use ipam_api::agent::Verdict;

use super::image::Image;
use super::scene::MEBIBYTE;
use crate::support::agent::Agent;
use crate::support::ask::{allocations, make_pools};
use crate::support::plugin::Plugin;
use crate::support::{Cluster, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_on_a_full_disk_refuses_add_and_passes_del_on() {
    let disk = Image::new(16 * MEBIBYTE);
    let cluster = Cluster::up(1).await;
    make_pools(&cluster.ask()).await;
    // Only the plugin's requests write records.
    let mut agent = Agent::of(&cluster.urls(), "node-1", "heartbeat_interval_ms = 3600000");
    fs::create_dir(disk.path().join("state")).unwrap();
    symlink(disk.path().join("state"), agent.state()).unwrap();
    agent.start();
    agent.serves().await;
    let (pid, conf) = (agent.pid(), agent.network(&["web"]));
    let run = async |verb, container: &str| Plugin::new(verb, container, &conf).run().await;
    let held = async || allocations(&cluster.ask()).await.len();
    run("ADD", "c001").await.succeeds();
    run("STATUS", "").await.succeeds();

    disk.fill_but(0);
    // The journal's last block has room for some records. The shortest of a DEL is written at its end.
    let mut number = 0;
    until("no record fits into the journal", async || {
        number += 1;
        run("DEL", &format!("x{number:03}")).await.succeeds();
        let found = agent.check("journal").await;
        if found.verdict == Verdict::Failed { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
    let refused = run("ADD", "c002").await.fails(11);
    assert!(refused.contains("the journal can't be written"), "{refused}");
    assert_eq!(held().await, 1);
    let status = run("STATUS", "").await.fails(50);
    assert!(status.contains("could not be written"), "{status}");
    run("DEL", "c001").await.succeeds();
    assert_eq!(held().await, 0, "the cluster has the DEL");
    until("both checks fail", async || {
        // Blocks that the file system freed late may have taken a record.
        disk.fill_but(0);
        run("DEL", "x000").await.succeeds();
        for name in ["journal", "status"] {
            let found = agent.check(name).await;
            if found.verdict != Verdict::Failed || !found.help.contains("ree disk space") {
                return Err(format!("{found:?}"));
            }
        }
        Ok(())
    })
    .await;

    disk.empty();
    run("ADD", "c003").await.succeeds();
    run("STATUS", "").await.succeeds();
    assert_ne!(agent.check("journal").await.verdict, Verdict::Failed);
    assert_eq!((agent.pid(), held().await), (pid, 1));
    run("DEL", "c003").await.succeeds();
    assert_eq!(held().await, 0);
}
