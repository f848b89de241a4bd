//! Clients without TLS, with other protocols, or with a foreign certificate.

use std::path::Path;
use std::time::Duration;

use ipam_api::client::{Call, Client, Options};
use ipam_api::{Code, Problem};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{SOON, others_are_served};
use crate::support::raw::{request, send};
use crate::support::tls::{Ca, Holder, connect};
use crate::support::{Cluster, LONG};

/// Result of a client with these options. The result doesn't change, so it tries for a short time.
async fn asks(cluster: &Cluster, options: &Options) -> Result<(), Problem> {
    let client = Client::with(&[cluster.members[0].url()], options)?;
    client.send(Call::get("/readyz").within(Duration::from_secs(1))).await.map(drop)
}

/// Options of a client with these files that trusts our CA.
fn options(ca: &Ca, holder: &Holder) -> Options {
    Options { ca_file: Some(ca.certificate()), ..holder.options() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn red_team_without_tls_nothing_is_served_on_a_tls_port() {
    let (cluster, _ca) = Cluster::secure(1);
    let cluster = cluster.all_up().await;
    for bytes in [request("GET", "/v1/networks", &[], b""), request("PUT", "/v1/networks/plain", &[], b"{}")]
    {
        let answer = send(cluster.members[0].client, &bytes).await.expect("a plain answer");
        assert_eq!((answer.status, answer.json::<Problem>().code), (400, Code::TlsRequired));
    }
    for bytes in [&b"\r\n\r\n"[..], b"\0\0\0\0", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        let answer = send(cluster.members[0].client, bytes).await;
        assert!(answer.is_none_or(|answer| answer.status == 400));
    }
    let problem = asks(&cluster, &Options::default()).await.unwrap_err();
    assert!(problem.detail.contains("CA that isn't trusted"), "{problem}");
    others_are_served(&cluster).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn red_team_tls_on_a_plain_port_disturbs_no_client() {
    let cluster = Cluster::up(1).await;
    let ca = Ca::new(cluster.dir.path().join("ca"));
    for port in [cluster.members[0].client, cluster.members[0].peer] {
        for name in ["localhost", "n1.member.ipamd.internal"] {
            let shaken = timeout(LONG, connect(port, name, &ca.certificate(), None)).await.unwrap();
            assert!(shaken.is_err());
        }
    }
    others_are_served(&cluster).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn red_team_a_certificate_of_another_ca_or_one_that_has_expired_opens_nothing() {
    let (cluster, ca) = Cluster::secure(1);
    let cluster = cluster.all_up().await;
    let theirs = Ca::new(cluster.dir.path().join("theirs"));
    for holder in [
        theirs.client("alice"),
        theirs.node("default", "worker-3"),
        theirs.member("n1", "127.0.0.1"),
        ca.expired("alice.client.ipamd.internal"),
        ca.expired("n1.member.ipamd.internal"),
    ] {
        let problem = asks(&cluster, &options(&ca, &holder)).await.unwrap_err();
        assert_eq!(problem.code, Code::Unreachable, "{problem}");
        // In TLS 1.3 a client is through before it is refused, and may see nothing but the connection's end.
        let printed = ["refused the TLS handshake", "connection was not ready"];
        assert!(printed.iter().any(|printed| problem.detail.contains(printed)), "{problem}");
        others_are_served(&cluster).await;
    }
    let good = options(&ca, &ca.client("alice"));
    let client = Client::with(&[cluster.members[0].url()], &good).unwrap();
    client.send(Call::get("/readyz").within(SOON)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn red_team_a_members_certificate_identifies_no_client() {
    let (cluster, ca) = Cluster::secure(1);
    let cluster = cluster.all_up().await;
    let holder = cluster.members[0].tls.clone().unwrap();
    let as_member = principal(&cluster, &options(&ca, &holder)).await;
    let as_nobody =
        principal(&cluster, &Options { ca_file: Some(ca.certificate()), ..Options::default() }).await;
    assert_eq!(as_member, as_nobody);
    let as_node = principal(&cluster, &options(&ca, &ca.node("default", "worker-3"))).await;
    assert_ne!(as_node, as_nobody);
}

/// Principal of a client, read from the result of a write.
async fn principal(cluster: &Cluster, options: &Options) -> Result<String, Code> {
    let client = Client::with(&[cluster.members[0].url()], options).unwrap();
    let call = Call::put("/v1/networks/mine").json(&serde_json::json!({"name": "mine"})).unwrap();
    let made: serde_json::Value = client.call(call.within(SOON)).await.map_err(|problem| problem.code)?;
    Ok(made["meta"]["created_by"].as_str().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn red_team_handshakes_that_never_end_keep_no_client_out() {
    let (cluster, ca) = Cluster::secure(1);
    let cluster = cluster.all_up().await;
    let to = cluster.members[0].client;
    let mut slow = Vec::new();
    for at in 0..600 {
        let mut stream = TcpStream::connect(to).await.unwrap();
        match at % 3 {
            0 => {}
            1 => stream.write_all(&[22, 3, 1]).await.unwrap(),
            _ => stream.write_all(&[22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]).await.unwrap(),
        }
        slow.push(stream);
    }
    // Other addresses are served; this one's places for handshakes are taken, and become free again.
    let other = from_elsewhere(&cluster, &ca.certificate()).await;
    assert!(other.starts_with("HTTP/1.1 200 "), "{other}");
    for mut stream in slow {
        let mut answer = Vec::new();
        let _ = timeout(LONG, stream.read_to_end(&mut answer)).await.expect("a handshake may last for ever");
    }
    others_are_served(&cluster).await;
}

/// Response to a client of another address.
async fn from_elsewhere(cluster: &Cluster, ca: &Path) -> String {
    let config = rustls::ClientConfig::builder_with_provider(ipam_api::tls::provider())
        .with_protocol_versions(ipam_api::tls::VERSIONS)
        .unwrap()
        .with_root_certificates(ipam_api::tls::read_roots(ca).unwrap())
        .with_no_client_auth();
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.9.9.9:0".parse().unwrap()).unwrap();
    let stream = socket.connect(cluster.members[0].client).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(config));
    let mut stream = connector.connect("localhost".try_into().unwrap(), stream).await.unwrap();
    stream.write_all(&request("GET", "/readyz", &[], b"")).await.unwrap();
    let mut answer = Vec::new();
    let _ = timeout(SOON, stream.read_to_end(&mut answer)).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}
