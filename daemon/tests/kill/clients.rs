//! Clients killed at any moment, and requests that come late: exactly once, and never after the end.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use ipam_api::Code;
use ipam_api::client::{Call, Client};
use ipam_api::request::{AllocateRequest, Attachment, ReleaseAttachmentRequest, Released, Started};
use serde_json::json;

use super::{many, restless};
use crate::support::Cluster;
use crate::support::ask::{addresses, allocate, allocate_request, allocations, get, make_pools, refused};
use crate::support::plugin::{Plugin, network};
use crate::support::random::Random;

/// Runs that only show how long one takes.
const UNDISTURBED: usize = 5;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_killed_anywhere_and_run_again_gets_one_answer() {
    let mut random = Random::new();
    let cluster = Cluster::up(3).await;
    make_pools(&cluster.ask()).await;
    let conf = network(&cluster.urls(), "node-1", &["web", "web6"]);
    // Duration without kills, after a warm-up.
    let mut usual = usize::MAX;
    for number in 0..UNDISTURBED {
        let begun = Instant::now();
        Plugin::new("ADD", &format!("u{number}"), &conf).run().await.succeeds();
        usual = usual.min(usize::try_from(begun.elapsed().as_micros()).unwrap());
    }
    let runs = many(120, 40);
    let (mut before, mut after) = (0, 0);
    for number in 1..=runs {
        let container = format!("c{number}");
        let plugin = Plugin::new("ADD", &container, &conf);
        let moment = u64::try_from(random.between(0, usual)).unwrap();
        let moment = Instant::now() + Duration::from_micros(moment);
        let mut killed = plugin.start().await;
        // To the microsecond, which the runtime's own timer is too coarse for.
        std::thread::sleep(moment.saturating_duration_since(Instant::now()));
        killed.kill().await.unwrap();
        let known = attached(&cluster.at(number % 3), &container).await;
        let first = plugin.run().await;
        let given = first.addresses();
        match known {
            Some(known) => {
                assert_eq!(known, given, "{container} was given these before it was killed");
                after += 1;
            }
            None => before += 1,
        }
        assert_eq!(plugin.run().await, first);
        assert_eq!(attached(&cluster.at((number + 1) % 3), &container).await, Some(given));
    }
    println!("killed before it was decided: {before}, after: {after}");
    assert!(before > 0 && after > 0, "{before} and {after}: the moments were not well chosen");
    assert_eq!(allocations(&cluster.ask()).await.len(), 2 * (runs + UNDISTURBED));
    cluster.settled().await;
}

/// The addresses of a container's attachment, if it has one.
async fn attached(client: &Client, container: &str) -> Option<Vec<IpAddr>> {
    let path = format!("/v1/attachments/default/node-1/lan/{container}/eth0");
    match get::<Attachment>(client, &path).await {
        Ok(found) => Some(found.interface.addresses.iter().map(|given| given.address.addr()).collect()),
        Err(problem) => {
            assert_eq!(problem.code, Code::NotFound, "{problem}");
            None
        }
    }
}

/// An ADD of a process that began then.
fn add(at_us: u64) -> AllocateRequest {
    let key = json!({"node": "node-1", "config": "lan", "container_id": "c1", "interface": "eth0"});
    let mut allocate_request = allocate_request("c1", &["web", "web6"]);
    allocate_request.attachment = Some(serde_json::from_value(key).unwrap());
    allocate_request.started = Some(started(at_us));
    allocate_request
}

fn started(at_us: u64) -> Started {
    Started { boot_id: "this-boot".to_owned(), at_us, start_ticks: None }
}

async fn del(client: &Client, at_us: u64) -> Released {
    let attachment = add(0).attachment.unwrap();
    let request =
        ReleaseAttachmentRequest { attachment, started: Some(started(at_us)), endpoint: None, uid: None };
    client.call(Call::post("/v1/attachments/release").json(&request).unwrap().repeatable()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_add_that_began_before_the_del_is_refused_whenever_it_comes() {
    let mut cluster = restless().all_up().await;
    make_pools(&cluster.ask()).await;
    let first = allocate(&cluster.at(0), &add(100)).await.unwrap();
    // The same process again, and one that the runtime started after it: the same answer.
    for at_us in [100, 150] {
        assert_eq!(allocate(&cluster.at(1), &add(at_us)).await.unwrap().interfaces, first.interfaces);
    }
    // A DEL that began before the ADD is late itself.
    let released = del(&cluster.at(2), 200).await;
    assert_eq!(released.addresses, addresses(&first));
    assert!(del(&cluster.at(0), 201).await.addresses.is_empty(), "it is gone already");

    let late = async |cluster: &Cluster| {
        for at in 0..3 {
            for at_us in [100, 199] {
                refused(allocate(&cluster.at(at), &add(at_us)).await, Code::AttachmentReleased);
            }
        }
        assert!(allocations(&cluster.ask()).await.is_empty());
    };
    late(&cluster).await;
    // Waiting for another leader, or for all members, doesn't help either.
    let leader = cluster.leader().await;
    cluster.members[leader].kill();
    cluster.start(leader);
    cluster.ready().await;
    late(&cluster).await;
    cluster.kill_all();
    cluster.start_all();
    cluster.ready().await;
    late(&cluster).await;
    // One that began afterwards is welcome, same container or not.
    let second = allocate(&cluster.at(0), &add(300)).await.unwrap();
    assert!(!second.repeated);
    assert_eq!(allocations(&cluster.ask()).await.len(), 2);
    cluster.settled().await;
}
