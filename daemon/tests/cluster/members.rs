//! The members of a cluster, as an administrator sees and changes them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use ipam_api::client::Client;
use serde_json::Value;

use crate::cluster::command_line::ipamctl;
use crate::support::ask::{addresses, allocate, allocate_request, allocations, known, make_pools};
use crate::support::{Cluster, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leadership_is_moved_and_previewed() {
    let mut cluster = Cluster::calm(3).await;
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
    assert!(again.stderr.contains("already done"), "{again:?}");
    assert_eq!(cluster.leader().await, heir);

    let wrong = ipamctl(&servers, "cluster transfer-leader n4").await.ends(3);
    assert!(wrong.stderr.contains("there is no member n4"), "{wrong:?}");
    // Any voter, if none is named.
    ipamctl(&servers, "cluster transfer-leader").await.ends(0);
    let last = cluster.leader().await;
    assert_ne!(last, heir);

    // With one member left there is no leader, which is reported; the known state is still shown.
    cluster.members[last].kill();
    cluster.members[heir].kill();
    let left = [cluster.members[3 - last - heir].url()];
    ipamctl(&left, "cluster members --timeout 2s").await.ends(5);
    let stale = ipamctl(&left, "cluster members --consistency stale -o json").await.ends(0).json();
    assert_eq!(stale["items"].as_array().unwrap().len(), 3);
}

/// Adds one member with a token, and waits until it has caught up; returns its index.
async fn joined(cluster: &mut Cluster, name: &str) -> usize {
    let servers = cluster.urls();
    let token = cluster.dir.path().join(format!("{name}.token"));
    let line = format!("token member --ttl 10m --to-file {}", token.display());
    ipamctl(&servers, &line).await.ends(0);
    let at = cluster.add(name, Some(token));
    cluster.start(at);
    until(&format!("{name} is a learner that has caught up"), async || {
        let seen = ipamctl(&servers, "cluster members -o json").await.ends(0).json();
        let member = seen["items"].as_array().unwrap().iter().find(|member| member["name"] == name).cloned();
        let member = member.ok_or_else(|| seen.to_string())?;
        let there = member["answers"] == true && member["behind"].as_u64().is_some_and(|behind| behind < 100);
        if there { Ok(()) } else { Err(seen.to_string()) }
    })
    .await;
    at
}

async fn voters(servers: &[String]) -> Vec<String> {
    let seen = ipamctl(servers, "cluster members -o json").await.ends(0).json();
    let members = seen["items"].as_array().unwrap().clone();
    let voters = members.iter().filter(|member| member["role"] != "learner");
    voters.map(|member| member["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_become_five_and_go_on_with_three_of_them() {
    let mut cluster = Cluster::up(3).await;
    make_pools(&cluster.ask()).await;
    let servers = cluster.urls();
    for (name, id) in [("n4", 4), ("n5", 5)] {
        let at = joined(&mut cluster, name).await;
        let previewed = ipamctl(&servers, &format!("cluster promote {name} --dry-run")).await.ends(0);
        assert!(previewed.stdout.contains(&format!("{name} (member {id}) gets a vote")), "{previewed:?}");
        assert!(!voters(&servers).await.contains(&name.to_owned()), "a preview changes nothing");
        ipamctl(&servers, &format!("cluster promote {name}")).await.ends(0);
        assert!(voters(&servers).await.contains(&name.to_owned()));
        let again = ipamctl(&servers, &format!("cluster promote {name}")).await.ends(0);
        assert!(again.stderr.contains("already done"), "{again:?}");
        // It answers clients as the others do.
        allocate(&cluster.at(at), &allocate_request(name, &["web"])).await.unwrap();
    }
    cluster.settled().await;
    let leader = cluster.leader().await;
    cluster.members[leader].kill();
    cluster.members[(leader + 1) % 5].kill();
    cluster.leader().await;
    allocate(&cluster.ask(), &allocate_request("left", &["web"])).await.unwrap();
    cluster.start_all();
    cluster.ready().await;
    cluster.settled().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_member_is_replaced_under_load_and_nothing_is_lost() {
    let mut cluster = Cluster::up(3).await;
    make_pools(&cluster.ask()).await;
    joined(&mut cluster, "n4").await;
    let servers = cluster.urls();
    let dead = cluster.follower().await;
    let name = cluster.members[dead].name.clone();
    let (over, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let writers: Vec<_> = (0..4)
        .map(|writer| tokio::spawn(write_until(cluster.ask(), writer, over.clone(), written.clone())))
        .collect();
    let go_on = async || {
        let before = written.load(Relaxed);
        until("writing goes on", async || match written.load(Relaxed) {
            now if now > before + 20 => Ok(()),
            now => Err(format!("{now} after {before}")),
        })
        .await;
    };
    go_on().await;
    cluster.members[dead].kill();
    go_on().await;
    until("the others see that it is gone", async || {
        let seen = ipamctl(&servers, "cluster members -o json").await.ends(0).json();
        if seen["can_lose"] == 0 { Ok(()) } else { Err(seen.to_string()) }
    })
    .await;
    // A script needs the explicit flag.
    ipamctl(&servers, &format!("cluster replace {name} n4")).await.ends(2);
    let previewed = ipamctl(&servers, &format!("cluster replace {name} n4 --dry-run")).await.ends(0);
    assert!(previewed.stdout.contains("can lose   0 before, 1 after"), "{previewed:?}");
    ipamctl(&servers, &format!("cluster replace {name} n4 --yes")).await.ends(0);
    let again = ipamctl(&servers, &format!("cluster replace {name} n4 --yes")).await.ends(0);
    assert!(again.stderr.contains("already done"), "{again:?}");
    go_on().await;
    let now = voters(&servers).await;
    assert!(now.len() == 3 && now.contains(&"n4".to_owned()) && !now.contains(&name), "{now:?}");
    over.store(true, Relaxed);
    let mut acknowledged = Vec::new();
    for writer in writers {
        acknowledged.extend(writer.await.unwrap());
    }
    let found = allocations(&cluster.ask()).await;
    for (who, address) in &acknowledged {
        let kept =
            found.iter().any(|held| held.endpoint.name.as_str() == who && held.address.addr() == *address);
        assert!(kept, "{who} had {address} and lost it");
    }
    // The replaced member returns, learns of its removal, and exits.
    cluster.start(dead);
    let status = cluster.members[dead].exit().await;
    assert_eq!(status.code(), Some(5), "{}", cluster.members[dead].tail());
    assert!(cluster.members[dead].logged().contains("was removed from the cluster"));
}

/// Takes addresses until it is over; what was acknowledged.
async fn write_until(
    client: Client,
    writer: usize,
    over: Arc<AtomicBool>,
    written: Arc<AtomicUsize>,
) -> Vec<(String, std::net::IpAddr)> {
    let mut acknowledged = Vec::new();
    for number in 0.. {
        if over.load(Relaxed) {
            break;
        }
        let name = format!("w{writer}-{number}");
        // It may be repeated, so the client does so until it knows.
        let given = allocate(&client, &allocate_request(&name, &["web"])).await.unwrap();
        written.fetch_add(1, Relaxed);
        acknowledged.push((name, addresses(&given)[0]));
    }
    acknowledged
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn removing_is_refused_where_too_few_would_be_left() {
    let mut cluster = Cluster::up(3).await;
    let servers = cluster.urls();
    let leader = cluster.leader().await;
    let (dead, other) = ((leader + 1) % 3, (leader + 2) % 3);
    let names: Vec<String> = cluster.members.iter().map(|member| member.name.clone()).collect();
    cluster.members[dead].kill();
    until("the others see that it is gone", async || {
        let seen = ipamctl(&servers, "cluster members -o json").await.ends(0).json();
        if seen["can_lose"] == 0 { Ok(()) } else { Err(seen.to_string()) }
    })
    .await;
    let refused =
        ipamctl(&servers, &format!("cluster remove {} --confirm {}", names[other], names[other])).await;
    assert!(refused.ends(1).stderr.contains("nothing could be changed any more"));
    // The dead member can be removed with a flag: then no other may fail.
    ipamctl(&servers, &format!("cluster remove {} --yes", names[dead])).await.ends(2);
    ipamctl(&servers, &format!("cluster remove {} --confirm {}", names[dead], names[dead])).await.ends(0);
    let again = ipamctl(&servers, &format!("cluster remove {} --confirm {}", names[dead], names[dead])).await;
    assert!(again.ends(0).stderr.contains("already done"));
    // A leader that is removed hands over first, and ends.
    let leader = cluster.leader().await;
    let name = &names[leader];
    ipamctl(&servers, &format!("cluster remove {name} --confirm {name}")).await.ends(0);
    assert_eq!(cluster.members[leader].exit().await.code(), Some(5));
    let left = 3 - leader - dead;
    assert_eq!(voters(&[cluster.members[left].url()]).await, [names[left].clone()]);
    let last = ipamctl(&servers, &format!("cluster remove {} --confirm {}", names[left], names[left])).await;
    assert!(last.ends(1).stderr.contains("the last voter"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wiped_member_comes_back_as_a_new_one_only() {
    let mut cluster = Cluster::up(3).await;
    make_pools(&cluster.ask()).await;
    let given = addresses(&allocate(&cluster.ask(), &allocate_request("h1", &["web"])).await.unwrap());
    let servers = cluster.urls();
    let wiped = cluster.follower().await;
    let name = cluster.members[wiped].name.clone();
    cluster.members[wiped].kill();
    cluster.wipe(wiped);
    let token = cluster.dir.path().join("again.token");
    ipamctl(&servers, &format!("token member --to-file {}", token.display())).await.ends(0);
    cluster.members[wiped].join = Some((servers.clone(), Some(token)));
    cluster.start(wiped);
    until("it is told what to do", async || match cluster.members[wiped].is_ready().await {
        Err(why) if why.contains(&format!("ipamctl cluster remove {name}")) => Ok(()),
        printed => Err(format!("{printed:?}")),
    })
    .await;
    // Then it joins by itself, under another id.
    ipamctl(&servers, &format!("cluster remove {name} --confirm {name}")).await.ends(0);
    until("it is taken in", async || cluster.members[wiped].is_ready().await).await;
    ipamctl(&servers, &format!("cluster promote {name}")).await.ends(0);
    let seen = ipamctl(&servers, "cluster members -o json").await.ends(0).json();
    let id = seen["items"].as_array().unwrap().iter().find(|member| member["name"] == *name).unwrap()["id"]
        .clone();
    assert_eq!(id, 4);
    assert_eq!(known(&cluster.at(wiped), given[0]).await.state, "allocated");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joining_takes_a_token_that_was_not_used() {
    let mut cluster = Cluster::up(1).await;
    let servers = cluster.urls();
    let at = joined(&mut cluster, "n2").await;
    let used = cluster.members[at].join.clone().unwrap().1;
    let third = cluster.add("n3", used);
    cluster.start(third);
    until("it is told that the token was used", async || match cluster.members[third].is_ready().await {
        Err(why) if why.contains("used already") => Ok(()),
        printed => Err(format!("{printed:?}")),
    })
    .await;
    // A crash in the middle changes nothing: the same data directory is the same member.
    cluster.members[at].kill();
    cluster.start(at);
    cluster.ready_at(at).await;
    let seen = ipamctl(&servers, "cluster members -o json").await.ends(0).json();
    assert_eq!(seen["items"].as_array().unwrap().len(), 2, "{seen}");
    // A token for members has no other use.
    let token = cluster.members[at].join.clone().unwrap().1.unwrap();
    ipamctl(&servers, &format!("--token-file {} pool list", token.display())).await.ends(1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_moved_tells_the_others_and_its_vote_counts() {
    let mut cluster = Cluster::up(3).await;
    make_pools(&cluster.ask()).await;
    let leader = cluster.leader().await;
    let (moved, other) = ((leader + 1) % 3, (leader + 2) % 3);
    cluster.members[moved].kill();
    let ports = cluster.free_ports(2);
    (cluster.members[moved].client, cluster.members[moved].peer) = (ports[0], ports[1]);
    // Its own configuration has the new address; the others run on with the old one.
    cluster.start(moved);
    cluster.members[other].kill();
    allocate(&cluster.at(leader), &allocate_request("h1", &["web"])).await.unwrap();
    let (peer, url) = (cluster.members[moved].peer_address(), cluster.members[moved].url());
    until("the one that didn't move knows where it is", async || {
        let seen = &cluster.shown(leader).await.members[moved];
        let right = seen.peer_address == peer && seen.client_url == url;
        if right { Ok(()) } else { Err(format!("{seen:?}")) }
    })
    .await;
}
