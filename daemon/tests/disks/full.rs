//! Disks that others fill: refused in time, and good again with the space, without a restart.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use ipam_api::client::{Call, Client};
use ipam_api::cluster::Cluster as Shown;
use ipam_api::{Code, Problem};

use super::scene::{LOW_BYTES, MEBIBYTE, Scene, allocate_soon, release_soon};
use crate::support::ask::{addresses, allocate, allocate_request, allocations};
use crate::support::until;

/// Between two tries of a writer that is refused.
const PAUSE: Duration = Duration::from_millis(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_full_disk_stops_no_other_member() {
    let mut scene = Scene::up(3).await;
    let (pids, client) = (scene.pids(), scene.cluster.ask());
    let full = scene.cluster.follower().await;
    scene.fill(full).await;
    for number in 0..50 {
        allocate(&client, &allocate_request(&format!("h{number}"), &["web", "web6"])).await.unwrap();
    }
    let follower = scene.cluster.at(full);
    // Through the full member too: it forwards writes that it can't keep.
    allocate(&follower, &allocate_request("h50", &["web"])).await.unwrap();
    scene.all_run();
    scene.disks[full].empty();
    scene.sees(full, "enough").await;
    assert_eq!(scene.cluster.settled().await.addresses.allocated, 101);
    assert_eq!(scene.pids(), pids);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_on_a_full_disk_hands_over() {
    let mut scene = Scene::up(3).await;
    let pids = scene.pids();
    let full = scene.cluster.leader().await;
    scene.fill(full).await;
    for number in 0..5 {
        scene.works_again(&format!("h{number}")).await;
    }
    assert_ne!(scene.cluster.leader().await, full);
    let logged = scene.cluster.members[full].logged();
    assert!(logged.contains("leadership was transferred"), "{logged}");
    scene.all_run();
    scene.disks[full].empty();
    scene.sees(full, "enough").await;
    assert_eq!(scene.cluster.settled().await.addresses.allocated, 5);
    assert_eq!(scene.pids(), pids);
}

/// Waits until a request is refused because of full disks. On a slow machine the request may fail in another
/// way first.
async fn refused_as_full<T: Debug>(mut request: impl AsyncFnMut() -> Result<T, Problem>) {
    until("it is refused", async || match request().await {
        Err(problem) if problem.code == Code::StorageFull => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_disks_of_a_majority_refuse_writes_and_serve_reads() {
    let mut scene = Scene::up(3).await;
    let (pids, client) = (scene.pids(), scene.cluster.ask());
    allocate(&client, &allocate_request("before", &["web"])).await.unwrap();
    let leader = scene.cluster.leader().await;
    let full: Vec<usize> = (0..3).filter(|at| *at != leader).collect();
    for at in &full {
        scene.fill(*at).await;
    }
    // Through every member: as soon as the leader knows of both, it is refused at once and by name.
    for at in 0..3 {
        let client = scene.cluster.at(at);
        // An entry accepted before the leader knew may be in the log, waiting for space.
        refused_as_full(async || allocate_soon(&client, "during").await).await;
        assert!(allocations(&client).await.iter().any(|one| one.endpoint.name.as_str() == "before"));
    }
    scene.all_run();
    for at in &full {
        scene.disks[*at].empty();
    }
    scene.works_again("during").await;
    scene.works_again("after").await;
    assert_eq!(scene.cluster.settled().await.addresses.allocated, 3);
    assert_eq!(scene.pids(), pids);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn releases_are_accepted_with_little_free_space() {
    let scene = Scene::up(3).await;
    let client = scene.cluster.ask();
    allocate(&client, &allocate_request("leaving", &["web"])).await.unwrap();
    let id = allocations(&client).await[0].id.to_string();
    for at in 0..3 {
        scene.disks[at].fill_but(LOW_BYTES - MEBIBYTE);
        scene.sees(at, "little").await;
    }
    refused_as_full(async || allocate_soon(&client, "coming").await).await;
    until("it is released", async || match release_soon(&client, &id).await {
        // An earlier release may have happened without an answer in time.
        Err(problem) if problem.code != Code::AllocationChanged => Err(problem.to_string()),
        _ => Ok(()),
    })
    .await;
    assert!(allocations(&client).await.iter().all(|one| one.endpoint.name.as_str() != "leaving"));
    for at in 0..3 {
        scene.disks[at].fill_but(0);
        scene.sees(at, "nothing").await;
    }
    refused_as_full(async || release_soon(&client, &id).await).await;
    scene.disks.iter().for_each(super::image::Image::empty);
    scene.works_again("coming").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_no_room_at_all_a_leader_is_still_elected_and_a_member_still_starts() {
    let mut scene = Scene::up(3).await;
    allocate(&scene.cluster.ask(), &allocate_request("before", &["web"])).await.unwrap();
    for at in 0..3 {
        scene.fill(at).await;
    }
    for _ in 0..3 {
        let old = scene.cluster.leader().await;
        scene.cluster.members[old].kill();
        // The votes of the others, and then a start: each finds its space in the ballast.
        assert_ne!(scene.cluster.leader().await, old);
        assert_eq!(allocations(&scene.cluster.ask()).await.len(), 1);
        scene.cluster.start(old);
        scene.cluster.ready().await;
    }
    let client = scene.cluster.ask();
    refused_as_full(async || allocate_soon(&client, "during").await).await;
    scene.all_run();
    scene.disks.iter().for_each(super::image::Image::empty);
    scene.works_again("after").await;
    assert_eq!(scene.cluster.settled().await.addresses.allocated, 2);
}

/// Allocates until it is told to stop; what was acknowledged.
async fn write(
    client: Client,
    writer: usize,
    stop: Arc<AtomicBool>,
    written: Arc<AtomicUsize>,
) -> BTreeSet<IpAddr> {
    let mut acknowledged = BTreeSet::new();
    let mut number = 0;
    while !stop.load(Relaxed) {
        match allocate_soon(&client, &format!("w{writer}-{number}")).await {
            Ok(allocated) => {
                acknowledged.extend(addresses(&allocated));
                written.fetch_add(1, Relaxed);
                number += 1;
            }
            // The same again: it may have come about.
            Err(problem) if problem.code == Code::StorageFull => tokio::time::sleep(PAUSE).await,
            Err(_) => {}
        }
    }
    acknowledged
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disks_that_fill_and_empty_under_load_lose_nothing() {
    let mut scene = Scene::up(3).await;
    let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let writers: Vec<_> = (0..4)
        .map(|writer| tokio::spawn(write(scene.cluster.ask(), writer, stop.clone(), written.clone())))
        .collect();
    for round in 0..6 {
        let full = [round % 3, (round + 1) % 3];
        for at in full {
            scene.disks[at].fill_but(0);
        }
        for at in full {
            until("it has noticed, or was too late", async || {
                if scene.cluster.members[at].ended().is_some() {
                    return Ok(());
                }
                let call = Call::get("/v1/cluster").within(Duration::from_secs(1));
                let shown: Result<Shown, _> = scene.cluster.at(at).call(call).await;
                match shown.map(|shown| shown.disk_room) {
                    Ok(Some(room)) if room == "nothing" => Ok(()),
                    other => Err(format!("{other:?}")),
                }
            })
            .await;
        }
        for at in full {
            scene.disks[at].empty();
        }
        let before = written.load(Relaxed);
        until("all write again", async || {
            scene.supervise().await;
            let more = written.load(Relaxed) - before;
            if more >= 20 { Ok(()) } else { Err(format!("{more} writes")) }
        })
        .await;
    }
    stop.store(true, Relaxed);
    let mut acknowledged = BTreeSet::new();
    for writer in writers {
        let of_one = writer.await.unwrap();
        assert!(of_one.is_disjoint(&acknowledged), "given twice");
        acknowledged.extend(of_one);
    }
    scene.supervise().await;
    scene.cluster.ready().await;
    scene.cluster.settled().await;
    scene.holds(&acknowledged).await;
}
