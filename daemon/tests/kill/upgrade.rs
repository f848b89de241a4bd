//! Members taken one after the other from this program to one of the next feature level, under load.

use std::sync::{Arc, Mutex};

use ipam_api::event::EventPage;
use serde_json::{Value, json};

use crate::members::holds_on_every_member;
use crate::support::ask::{get, list, make_pools, put};
use crate::support::{Cluster, programs, until};
use crate::writers::{Ledger, Writers, held};
use crate::{many, restless};

/// What the other rule of the next level adds to the name of whoever makes a resource.
const MARK: &str = " (level 2)";

/// The level of the state, as each member that is up has it.
async fn levels(cluster: &Cluster) -> Vec<u32> {
    let mut levels = Vec::new();
    for at in 0..cluster.members.len() {
        levels.push(cluster.shown(at).await.level);
    }
    levels
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_upgrade_changes_the_rules_on_all_members_at_one_entry() {
    let mut cluster = restless().all_up().await;
    let client = cluster.ask();
    make_pools(&client).await;
    let ledger = Arc::new(Mutex::new(Ledger::default()));
    let mut writers = Writers::start(8, 0, &cluster.urls(), &ledger);
    let mut made = 0;
    let mut make = async || {
        made += 1;
        put(&client, "networks", json!({"name": format!("made-{made}")})).await;
    };
    for at in 0..3 {
        make().await;
        writers.get_on(many(300, 50)).await;
        assert_eq!(levels(&cluster).await, [1; 3], "members with the old program know no other level");
        assert!(cluster.stop(at).await.success());
        cluster.members[at].program = programs::next_level_ipamd();
        cluster.start(at);
        cluster.ready().await;
    }
    until("the level is raised everywhere", async || {
        make().await;
        let levels = levels(&cluster).await;
        if levels == [2; 3] { Ok(()) } else { Err(format!("{levels:?}")) }
    })
    .await;
    make().await;
    writers.get_on(many(300, 50)).await;
    writers.stop().await;
    let shown = holds_on_every_member(&cluster, &ledger).await;
    assert!(held(&ledger).acknowledged() > many(1200, 200));
    for member in &shown.members {
        assert_eq!((member.level, member.in_doubt.as_deref()), (Some(2), None), "{}", member.name);
    }
    // One entry, the same one everywhere, and every rule before and after it is the right one.
    let page: EventPage = get(&client, "/v1/events?kind=cluster").await.unwrap();
    let raised: Vec<_> = page.items.iter().filter(|event| event.what == "cluster.level").collect();
    assert_eq!(raised.len(), 1, "{raised:?}");
    let networks: Vec<Value> = list(&client, "/v1/networks").await;
    let (mut before, mut after) = (0, 0);
    for meta in networks.iter().map(|network| &network["meta"]) {
        let marked = meta["created_by"].as_str().unwrap().ends_with(MARK);
        assert_eq!(marked, meta["id"].as_u64().unwrap() > raised[0].revision, "{meta}");
        if marked { after += 1 } else { before += 1 }
    }
    assert!(before >= 3 && after >= 1, "{before} before, {after} after");

    // Who comes back with the old program doesn't guess by which rules to go on.
    assert!(cluster.stop(2).await.success());
    cluster.members[2].program = programs::ipamd();
    cluster.start(2);
    assert!(!cluster.members[2].exit().await.success());
    let said = cluster.members[2].logged();
    assert!(said.contains("the cluster's feature level is 2, and this ipamd knows up to 1"), "{said}");
    // Nor does one that gets the state from the others.
    cluster.members[2].program = programs::next_level_ipamd();
    cluster.start(2);
    cluster.ready().await;
    cluster.settled().await;
}
