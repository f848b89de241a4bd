//! Ports and proofs that don't fit together, and addresses that a caller may not specify.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixListener};

use super::port::dial;
use super::preface::present;
use super::tests::{FakeHost, LONG, private};
use super::*;
use crate::socket::PrivateSocket;

fn handshake(client_url: &str, peer_address: Option<&str>) -> Handshake {
    let identity = |name: &str, member_id, disk: &str| PeerIdentity {
        name: name.to_owned(),
        member_id,
        disk_id: disk.to_owned(),
    };
    Handshake {
        cluster_id: "c".to_owned(),
        from: identity("n1", 1, "mine"),
        to: identity("n2", 2, "disk"),
        client_url: client_url.to_owned(),
        purpose: Purpose::Control,
        peer_address: peer_address.map(str::to_owned),
    }
}

#[tokio::test]
async fn without_tls_no_address_of_the_network_is_called() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let error = dial("n2", &address, &PeerProof::SameUser).await.err().unwrap().to_string();
    assert!(error.contains("[peer_tls]"), "{error}");
    dial("n2", &address, &PeerProof::Nothing).await.unwrap();
    let error = dial("n2", "", &PeerProof::SameUser).await.err().unwrap().to_string();
    assert!(error.contains("no peer port"), "{error}");
    let error = dial("n2", "n2\n:1", &PeerProof::Nothing).await.err().unwrap().to_string();
    assert!(error.contains("is not a peer address") && !error.contains('\n'), "{error}");
}

#[tokio::test]
async fn a_socket_is_called_and_answered_by_the_same_user() {
    let dir = private();
    let path = dir.path().join("s");
    let server =
        tokio::spawn(serve(PeerPort::Socket(PrivateSocket::bind(&path).await.unwrap()), FakeHost::default()));
    let address = format!("unix:{}", path.display());
    for proof in [PeerProof::SameUser, PeerProof::Nothing] {
        let mut stream = dial("n2", &address, &proof).await.unwrap();
        present(&mut stream, handshake("http://n1", Some("unix:/run/n1"))).await.unwrap();
    }
    server.abort();
    let _ = server.await;
    // A process with another protocol at that port gives no valid answer.
    std::fs::remove_file(&path).unwrap();
    let listener = UnixListener::bind(&path).unwrap();
    let other =
        tokio::spawn(async move { listener.accept().await.unwrap().0.write_all(b"HTTP/1.1 400").await });
    let mut stream = dial("n2", &address, &PeerProof::SameUser).await.unwrap();
    present(&mut stream, handshake("http://n1", None)).await.unwrap_err();
    other.await.unwrap().unwrap();
}

#[tokio::test]
async fn places_that_no_member_has_are_refused_before_they_are_learned() {
    let dir = private();
    let path = dir.path().join("s");
    let _server =
        tokio::spawn(serve(PeerPort::Socket(PrivateSocket::bind(&path).await.unwrap()), FakeHost::default()));
    let address = format!("unix:{}", path.display());
    for (client_url, peer_address) in [
        ("", None),
        ("javascript:x", None),
        ("http://n1\u{1b}[2J", None),
        ("http://n1", Some("n1\u{202e}:1")),
        ("http://n1", Some("n1")),
        ("http://n1", Some("")),
    ] {
        let mut stream = dial("n2", &address, &PeerProof::SameUser).await.unwrap();
        let presented = present(&mut stream, handshake(client_url, peer_address)).await;
        presented.expect_err(client_url);
        let mut rest = Vec::new();
        let hung_up = tokio::time::timeout(LONG, stream.read_to_end(&mut rest)).await.unwrap();
        assert!(hung_up.is_err() || rest.is_empty());
    }
}
