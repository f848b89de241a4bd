//! Foreign and malformed connections to the peer port don't affect the cluster.

use std::time::{Duration, Instant};

use ipam_raft::node::{PeerPort, Status};
use ipam_raft::socket::PrivateSocket;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::harness::{Cluster, LONG, propose};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_on_the_peer_port_disturbs_no_member() {
    let cluster = Cluster::up(3).await;
    let leader = cluster.leader().await;
    let term = cluster.node(leader).status().term;
    let garbage: [&[u8]; 6] = [
        b"GET / HTTP/1.1\r\nhost: x\r\n\r\n",
        &[0xff; 4096],
        &[0, 0, 0, 0],
        &[0, 0, 0, 2, 1, 200],
        // A frame of the largest size, announced and never sent.
        &[0x03, 0xff, 0xff, 0xff, 1],
        &[0x16, 0x03, 0x01, 0x02, 0x00, 0x01],
    ];
    for socket in cluster.places.iter().map(|place| &place.socket) {
        for bytes in garbage {
            let mut stream = UnixStream::connect(socket).await.unwrap();
            stream.write_all(bytes).await.unwrap();
            // The member closes the connection without an answer.
            let mut answer = Vec::new();
            let hung_up = timeout(LONG, stream.read_to_end(&mut answer)).await.unwrap();
            assert!(hung_up.is_err() || answer.is_empty());
        }
    }
    // Many silent connections don't keep the members from each other.
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(UnixStream::connect(&cluster.places[leader].socket).await.unwrap());
    }
    let follower = cluster.follower().await;
    propose(cluster.node(follower), "undisturbed").await.unwrap();
    cluster.node(follower).read(Instant::now() + LONG).await.unwrap();
    assert_eq!(cluster.node(leader).status().term, term, "the leader stays");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_of_another_cluster_are_sent_away() {
    let mut ours = Cluster::up(1).await;
    let theirs = Cluster::up(1).await;
    // A foreign member has the address of one of ours as its peer, as after a copied configuration.
    ours.places.push(crate::harness::Place {
        name: ipam_api::Name::new("n2").unwrap(),
        address: theirs.places[0].address,
        socket: theirs.places[0].socket.clone(),
        dir: tempfile::TempDir::new().unwrap(),
        node: None,
        joins: false,
    });
    let before = theirs.node(0).status();
    // The other cluster uses the listener of this member, so the member starts elsewhere.
    let confused = {
        let place = &ours.places[1];
        let socket = place.dir.path().join("peers").join("n2");
        let port = PeerPort::Socket(PrivateSocket::bind(&socket).await.unwrap());
        let address = format!("unix:{}", socket.display());
        let members = ours.places.iter().map(|place| ipam_raft::node::InitialMember {
            name: place.name.clone(),
            peer_address: place.peer_address(),
        });
        ipam_raft::node::Node::start(ipam_raft::node::NodeConfig::new(
            place.dir.path().to_owned(),
            place.name.clone(),
            port,
            address,
            "http://n2".to_owned(),
            members.collect(),
        ))
        .await
        .unwrap()
    };
    crate::harness::eventually("it reports that no member knows it", || async {
        confused.ready().is_err_and(|why| why.contains("doesn't know n2"))
    })
    .await;
    timeout(Duration::from_secs(1), confused.failed()).await.unwrap_err();
    assert!(!confused.status().founded);
    let after = theirs.node(0).status();
    // Other processes use the disk as well, so its free space may differ.
    assert_eq!(Status { disk: before.disk, ..after }, before);
}
