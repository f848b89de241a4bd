//! The members of a cluster, as an administrator sees and changes them.

use serde_json::Value;

use crate::command_line::ipamctl;
use crate::support::Cluster;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leadership_is_moved_and_previewed() {
    let mut cluster = Cluster::up(3).await;
    let servers = cluster.urls();
    let leader = cluster.leader().await;
    let heir = (leader + 1) % 3;
    let (from, to) = (cluster.members[leader].name.clone(), cluster.members[heir].name.clone());

    let seen = ipamctl(&servers, "cluster members -o json").await.ends(0).json();
    assert_eq!((seen["leader"].as_str(), seen["can_lose"].as_u64()), (Some(from.as_str()), Some(1)));
    assert!(seen["items"].as_array().unwrap().iter().all(|member| member["answers"] == Value::Bool(true)));

    let previewed = ipamctl(&servers, &format!("cluster transfer-leader {to} --dry-run")).await.ends(0);
    assert!(previewed.stdout.contains(&format!("leadership goes from {from} to {to}")), "{previewed:?}");
    assert_eq!(cluster.leader().await, leader, "a preview changes nothing");

    ipamctl(&servers, &format!("cluster transfer-leader {to}")).await.ends(0);
    assert_eq!(cluster.leader().await, heir);
    let again = ipamctl(&servers, &format!("cluster transfer-leader {to}")).await.ends(0);
    assert!(again.stderr.contains("nothing to do"), "{again:?}");
    assert_eq!(cluster.leader().await, heir);

    let wrong = ipamctl(&servers, "cluster transfer-leader n4").await.ends(3);
    assert!(wrong.stderr.contains("there is no member n4"), "{wrong:?}");
    // Any voter, if none is named.
    ipamctl(&servers, "cluster transfer-leader").await.ends(0);
    assert_ne!(cluster.leader().await, heir);

    // With one member left nobody leads, and that is said; what is known is still shown.
    cluster.members[leader].kill();
    cluster.members[heir].kill();
    let left = [cluster.members[3 - leader - heir].url()];
    ipamctl(&left, "cluster members --timeout 2s").await.ends(5);
    let stale = ipamctl(&left, "cluster members --consistency stale -o json").await.ends(0).json();
    assert_eq!(stale["items"].as_array().unwrap().len(), 3);
}
