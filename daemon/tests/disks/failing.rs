//! Disks that fail: no operation is retried, and the process exits with an error.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::image::Image;
use super::scene::{DAMAGED, DISK_FAILED, MEBIBYTE, Scene, allocate_soon};
use crate::support::ask::{addresses, allocate, allocate_request};
use crate::support::until;

/// Allocates until a member has ended; how it ended, and what was acknowledged meanwhile.
async fn allocate_until_it_ends(scene: &mut Scene, at: usize) -> (Option<i32>, BTreeSet<IpAddr>) {
    let mut acknowledged = BTreeSet::new();
    let client = scene.cluster.ask();
    let mut number = 0;
    let status = until("the member ends", async || {
        for _ in 0..20 {
            number += 1;
            if let Ok(allocated) = allocate_soon(&client, &format!("h{number}")).await {
                acknowledged.extend(addresses(&allocated));
            }
        }
        scene.cluster.members[at].ended().ok_or_else(|| "it runs".to_owned())
    })
    .await;
    scene.cluster.members[at].exit().await;
    (status.code(), acknowledged)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_refuses_a_write_ends_its_member_and_the_others_go_on() {
    let disk = |_| Image::lying(64 * MEBIBYTE, 48 * MEBIBYTE);
    let mut scene = Scene::up_on((0..3).map(disk).collect(), 2 * MEBIBYTE, MEBIBYTE).await;
    let failing = scene.cluster.leader().await;
    allocate(&scene.cluster.ask(), &allocate_request("before", &["web"])).await.unwrap();
    scene.disks[failing].refuse();
    let (code, acknowledged) = allocate_until_it_ends(&mut scene, failing).await;
    let member = &scene.cluster.members[failing];
    assert_eq!(code, Some(DISK_FAILED), "{}", member.tail());
    let last = member.last_line();
    assert!(last.contains("can't be written") && last.contains("start the member again"), "{last}");
    scene.works_again("after").await;
    scene.holds(&acknowledged).await;
    // Mended, it is a member like the others.
    scene.disks[failing].unmount();
    scene.disks[failing].accept();
    scene.disks[failing].mount();
    scene.cluster.start(failing);
    if let Some(status) = scene.recovers_or_ends(failing).await {
        // The mount dropped a page that the disk had refused, and left a file of full length. Within one boot of
        // the machine nothing distinguishes that from damage.
        let member = &mut scene.cluster.members[failing];
        member.exit().await;
        assert_eq!(status.code(), Some(DAMAGED), "{}", member.tail());
        assert!(member.logged().contains("doesn't read at byte"), "{}", member.tail());
    } else {
        scene.cluster.ready().await;
        scene.cluster.settled().await;
    }
    scene.holds(&acknowledged).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_finds_no_room_ends_its_member_and_opens_again() {
    // So little is kept free that a quick neighbour is faster than the daemon can look.
    let mut scene = Scene::up_on(vec![Image::new(64 * MEBIBYTE)], MEBIBYTE, 0).await;
    let client = scene.cluster.ask();
    let mut acknowledged = BTreeSet::new();
    let mut number = 0;
    let status = until("the log finds no room", async || {
        scene.disks[0].fill_but(3 * MEBIBYTE);
        scene.sees(0, "enough").await;
        scene.disks[0].fill_but(0);
        for _ in 0..20 {
            number += 1;
            match allocate_soon(&client, &format!("h{number}")).await {
                Ok(allocated) => acknowledged.extend(addresses(&allocated)),
                Err(_) => break,
            }
        }
        scene.disks[0].empty();
        // A refusal may be the first sign of a member that is about to end.
        scene.recovers_or_ends(0).await.ok_or_else(|| "it was faster".to_owned())
    })
    .await;
    scene.cluster.members[0].exit().await;
    assert_eq!(status.code(), Some(DISK_FAILED), "{}", scene.cluster.members[0].tail());
    let logged = scene.cluster.members[0].logged();
    assert!(logged.contains("No space left on device"), "{logged}");
    scene.cluster.start(0);
    scene.cluster.ready().await;
    scene.holds(&acknowledged).await;
    scene.works_again("after").await;
}
