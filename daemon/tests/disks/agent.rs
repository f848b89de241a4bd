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
    // Without its journal the agent fails a DEL that the cluster does not answer within a second. A runtime
    // repeats such a DEL.
    let del = async |container: &str| {
        until("the DEL succeeds", async || {
            let outcome = run("DEL", container).await;
            if outcome.is_success() { Ok(()) } else { Err(outcome.fails(11)) }
        })
        .await;
    };
    let held = async || allocations(&cluster.ask()).await.len();
    let all_is_free = async || {
        until("all addresses are free", async || match held().await {
            0 => Ok(()),
            held => Err(format!("{held} are held")),
        })
        .await;
    };
    run("ADD", "c001").await.succeeds();
    run("STATUS", "").await.succeeds();

    disk.fill_but(0);
    // The journal's last block has room for some records. The shortest of a DEL is written at its end.
    let mut number = 0;
    until("no record fits into the journal", async || {
        number += 1;
        del(&format!("x{number:03}")).await;
        let found = agent.check("journal").await;
        if found.verdict == Verdict::Failed { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
    let refused = run("ADD", "c002").await.fails(11);
    assert!(refused.contains("the journal can't be written"), "{refused}");
    assert_eq!(held().await, 1);
    let status = run("STATUS", "").await.fails(50);
    assert!(status.contains("could not be written"), "{status}");
    // The DEL reaches the cluster without the journal.
    del("c001").await;
    all_is_free().await;
    until("both checks fail", async || {
        // Blocks that the file system freed late may have taken a record.
        disk.fill_but(0);
        del("x000").await;
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
    // The agent may answer from its journal before the cluster has the DEL.
    run("DEL", "c003").await.succeeds();
    all_is_free().await;
}
