//! A single member gets further members, as in `deploy/docs/membership.md`.

use ipam_api::Code;
use ipam_api::client::Call;
use serde_json::json;

use crate::cluster::command_line::ipamctl;
use crate::support::ask::{addresses, allocate, allocate_request, known, make_pools};
use crate::support::{Cluster, until};

/// Adds one member with a token, and promotes it.
async fn grow(cluster: &mut Cluster, name: &str) {
    let servers = [cluster.members[0].url()];
    let token = cluster.dir.path().join(format!("{name}.token"));
    ipamctl(&servers, &format!("token member --to-file {}", token.display())).await.ends(0);
    let at = cluster.add(name, Some(token));
    cluster.start(at);
    cluster.ready_at(at).await;
    until(&format!("{name} gets a vote"), async || {
        let printed = ipamctl(&servers, &format!("cluster promote {name}")).await;
        if printed.stderr.contains("already done") { Ok(()) } else { Err(printed.stderr) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_single_member_is_restarted_with_a_socket_and_two_join() {
    let mut cluster = Cluster::of(1);
    cluster.members[0].alone = true;
    let mut cluster = cluster.all_up().await;
    make_pools(&cluster.ask()).await;
    let given = addresses(&allocate(&cluster.ask(), &allocate_request("h1", &["web"])).await.unwrap());
    let id = cluster.shown(0).await.id;
    assert_eq!(cluster.shown(0).await.members[0].peer_address, "");
    // Without a peer port it refuses new members with the reason.
    let request = json!({"name": "n2", "disk_id": "d", "peer_address": "unix:/run/n2", "client_url": "http://n2:1", "level": 99});
    let join = || Call::post("/v1/cluster/members").json(&request).unwrap();
    let problem = cluster.ask().send(join()).await.unwrap_err();
    assert_eq!(problem.code, Code::MemberUnfit, "{problem}");
    assert!(problem.help.contains("set peer_listen"), "{problem}");

    assert!(cluster.stop(0).await.success());
    cluster.members[0].alone = false;
    cluster.start(0);
    cluster.ready().await;
    // Of another kind it would reach no member.
    let request = json!({"name": "n2", "disk_id": "d", "peer_address": "n2:7441", "client_url": "http://n2:1", "level": 99});
    let problem =
        cluster.ask().send(Call::post("/v1/cluster/members").json(&request).unwrap()).await.unwrap_err();
    assert_eq!(problem.code, Code::MemberUnfit, "{problem}");
    assert!(problem.detail.contains("on its own host only"), "{problem}");
    for name in ["n2", "n3"] {
        grow(&mut cluster, name).await;
    }
    cluster.settled().await;
    let leader = cluster.leader().await;
    cluster.members[leader].kill();
    cluster.leader().await;
    let asked = (leader + 1) % 3;
    allocate(&cluster.at(asked), &allocate_request("h2", &["web"])).await.unwrap();
    assert_eq!(known(&cluster.at(asked), given[0]).await.state, "allocated");
    assert_eq!(cluster.shown(asked).await.id, id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_single_member_is_restarted_with_tls_and_two_join() {
    let (mut cluster, ca) = Cluster::secure(1);
    let tls = cluster.members[0].tls.take();
    cluster.members[0].alone = true;
    let mut cluster = cluster.all_up().await;
    make_pools(&cluster.ask()).await;
    let given = addresses(&allocate(&cluster.ask(), &allocate_request("h1", &["web"])).await.unwrap());
    assert!(cluster.stop(0).await.success());
    cluster.members[0].alone = false;
    cluster.members[0].tls = tls;
    cluster.start(0);
    cluster.ready().await;
    let ip = cluster.members[0].client.ip().to_string();
    let ca_file = ca.certificate();
    let servers = [cluster.members[0].url()];
    for name in ["n2", "n3"] {
        let token = cluster.dir.path().join(format!("{name}.token"));
        let ca_file = ca_file.display();
        let line = format!("--ca-file {ca_file} token member --to-file {}", token.display());
        ipamctl(&servers, &line).await.ends(0);
        let at = cluster.add(name, Some(token));
        cluster.members[at].tls = Some(ca.member(name, &ip));
        cluster.start(at);
        cluster.ready_at(at).await;
        until(&format!("{name} gets a vote"), async || {
            let printed = ipamctl(&servers, &format!("--ca-file {ca_file} cluster promote {name}")).await;
            if printed.stderr.contains("already done") { Ok(()) } else { Err(printed.stderr) }
        })
        .await;
    }
    cluster.settled().await;
    cluster.members[0].kill();
    cluster.leader().await;
    assert_eq!(known(&cluster.at(1), given[0]).await.state, "allocated");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_among_others_that_lost_its_peer_port_says_so() {
    let mut cluster = Cluster::up(3).await;
    assert!(cluster.stop(2).await.success());
    cluster.members[2].alone = true;
    cluster.start(2);
    assert!(!cluster.members[2].exit().await.success());
    let log = cluster.members[2].logged();
    assert!(log.contains("its cluster has other members") && log.contains("peer_listen"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_without_a_peer_port_starts_again_each_time() {
    let mut cluster = Cluster::of(1);
    cluster.members[0].alone = true;
    let mut cluster = cluster.all_up().await;
    // Raft publishes its members some time after its start.
    for _ in 0..10 {
        assert!(cluster.stop(0).await.success(), "{}", cluster.members[0].tail());
        cluster.start(0);
        cluster.ready().await;
    }
}
