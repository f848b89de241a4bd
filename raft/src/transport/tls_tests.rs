//! TLS between members: accepted and refused callers.

use ipam_api::Name;
use ipam_api::tls::{Credentials, TlsError};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, IsCa, KeyPair, date_time_ymd,
};
use rustls::RootCertStore;
use tokio::net::{TcpListener, TcpStream};

use super::preface::present;
use super::tests::{FakeHost, LONG};
use super::*;

type Ca = CertifiedIssuer<'static, KeyPair>;

fn ca(name: &str) -> Ca {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Credentials for this name; from 1975 to this year.
fn issued(ca: &Ca, names: &[&str], until_year: i32) -> PeerCredentials {
    let key = KeyPair::generate().unwrap();
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name = DistinguishedName::new();
    params.not_after = date_time_ymd(until_year, 1, 1);
    let certificate = params.signed_by(&key, ca).unwrap();
    let own = Credentials { chain: vec![certificate.der().clone()], key: key.into() };
    let mut roots = RootCertStore::empty();
    roots.add(ca.der().clone()).unwrap();
    PeerCredentials { own, roots }
}

fn identity(name: &str, member_id: u64, disk_id: &str) -> PeerIdentity {
    PeerIdentity { name: name.to_owned(), member_id, disk_id: disk_id.to_owned() }
}

fn handshake() -> Handshake {
    Handshake {
        cluster_id: "c".to_owned(),
        from: identity("n1", 1, "mine"),
        to: identity("n2", 2, "disk"),
        client_url: "https://n1".to_owned(),
        purpose: Purpose::Control,
        peer_address: None,
    }
}

fn member_tls(ca: &Ca, name: &str) -> PeerTls {
    tls(name, issued(ca, &[&format!("{name}.member.ipamd.internal")], 4000)).unwrap()
}

fn tls(name: &str, credentials: PeerCredentials) -> Result<PeerTls, TlsError> {
    PeerTls::new(&Name::new(name).unwrap(), credentials)
}

/// A member `n2` that answers peers.
async fn answering(tls: Option<PeerTls>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let port = match tls {
        Some(tls) => PeerPort::Tls(listener, tls),
        None => PeerPort::Open(listener),
    };
    tokio::spawn(serve(port, FakeHost::default()));
    address
}

/// Calls `n2` as the member `n1`; returns the reason of a failure.
async fn calls(address: &str, tls: Option<&PeerTls>) -> Result<(), String> {
    let called = async {
        let proof = tls.map_or(PeerProof::Nothing, |tls| PeerProof::Tls(tls.clone()));
        let mut stream = port::dial("n2", address, &proof).await.map_err(|error| error.to_string())?;
        present(&mut stream, handshake()).await.map_err(|error| error.to_string())
    };
    tokio::time::timeout(LONG, called).await.unwrap()
}

#[tokio::test]
async fn members_of_one_ca_speak_with_each_other() {
    let ca = ca("ours");
    let address = answering(Some(member_tls(&ca, "n2"))).await;
    let n1 = member_tls(&ca, "n1");
    calls(&address, Some(&n1)).await.unwrap();
    assert_eq!(
        hello_at("n2", &address, &PeerProof::Tls(n1.clone())).await.unwrap(),
        FakeHost::default().hello()
    );
    let peers = tests::peers_of(identity("n1", 1, "mine"), "https://n1", PeerProof::Tls(n1));
    for purpose in [Purpose::Append, Purpose::Control] {
        let channel = peers.channel(2, &tests::member(address.clone(), "disk"), purpose);
        let answer = channel.call(Request::ReadIndex, tests::late()).await.unwrap();
        assert!(matches!(answer, Answer::ReadIndex(Err(Declined::Unknown))), "{answer:?}");
    }
}

#[tokio::test]
async fn a_peer_without_a_member_certificate_is_refused_on_both_sides() {
    let (ours, theirs) = (ca("ours"), ca("theirs"));
    let address = answering(Some(member_tls(&ours, "n2"))).await;
    let why = calls(&address, Some(&member_tls(&theirs, "n1"))).await.unwrap_err();
    assert!(why.contains("CA that isn't trusted"), "{why}");
    // The caller trusts our CA and has a certificate of the other CA, so n2 refuses it.
    let foreign = issued(&theirs, &["n1.member.ipamd.internal"], 4000);
    let mut roots = RootCertStore::empty();
    roots.add(ours.der().clone()).unwrap();
    roots.add(theirs.der().clone()).unwrap();
    let foreign = tls("n1", PeerCredentials { own: foreign.own, roots }).unwrap();
    let why = calls(&address, Some(&foreign)).await.unwrap_err();
    assert!(why.contains("UnknownCA"), "{why}");
    // One side doesn't use TLS.
    calls(&address, None).await.unwrap_err();
    calls(&answering(None).await, Some(&member_tls(&ours, "n1"))).await.unwrap_err();
    // A CA that has the same name and another key.
    let why = calls(&address, Some(&member_tls(&ca("ours"), "n1"))).await.unwrap_err();
    assert!(why.contains("another CA"), "{why}");
    // Afterwards n2 still answers its own cluster.
    calls(&address, Some(&member_tls(&ours, "n1"))).await.unwrap();
}

#[tokio::test]
async fn another_members_name_is_refused_on_both_sides() {
    let ca = ca("ours");
    // n3 answers where n2 should.
    let address = answering(Some(member_tls(&ca, "n3"))).await;
    let why = calls(&address, Some(&member_tls(&ca, "n1"))).await.unwrap_err();
    assert!(why.contains("for another name"), "{why}");
    // n3 calls, and claims to be n1.
    let address = answering(Some(member_tls(&ca, "n2"))).await;
    let why = calls(&address, Some(&member_tls(&ca, "n3"))).await.unwrap_err();
    assert!(why.contains("that of member n3, not of"), "{why}");
}

#[tokio::test]
async fn a_client_or_node_of_the_same_ca_learns_nothing() {
    let ca = ca("ours");
    let address = answering(Some(member_tls(&ca, "n2"))).await;
    for name in ["n1.client.ipamd.internal", "n1.default.node.ipamd.internal"] {
        let credentials = issued(&ca, &[name], 4000);
        let config = rustls::ClientConfig::builder_with_provider(ipam_api::tls::provider())
            .with_protocol_versions(ipam_api::tls::VERSIONS)
            .unwrap()
            .with_root_certificates(credentials.roots)
            .with_client_auth_cert(credentials.own.chain, credentials.own.key)
            .unwrap();
        let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(config));
        for hello in [false, true] {
            let stream = TcpStream::connect(&address).await.unwrap();
            let server = "n2.member.ipamd.internal".try_into().unwrap();
            let mut stream = connector.connect(server, stream).await.unwrap();
            let why = match hello {
                true => preface::ask_hello(&mut stream).await.unwrap_err().to_string(),
                false => present(&mut stream, handshake()).await.unwrap_err().to_string(),
            };
            assert!(why.contains("only members are answered"), "{why}");
        }
    }
}

#[tokio::test]
async fn an_unacceptable_own_certificate_is_refused_at_the_start() {
    let (ours, theirs) = (ca("ours"), ca("theirs"));
    let member = "n1.member.ipamd.internal";
    let other_roots = issued(&theirs, &[member], 4000).roots;
    let foreign = PeerCredentials { roots: other_roots, ..issued(&ours, &[member], 4000) };
    for (credentials, says) in [
        (issued(&ours, &["n2.member.ipamd.internal"], 4000), "that of member n2"),
        (issued(&ours, &["n1.client.ipamd.internal"], 4000), "that of client n1"),
        (issued(&ours, &["n1.example.org"], 4000), "must be for n1.member.ipamd.internal"),
        (issued(&ours, &["*.member.ipamd.internal"], 4000), "names no member"),
        (issued(&ours, &[member, "n2.member.ipamd.internal"], 4000), "more than one"),
        (issued(&ours, &[member], 2001), "expired"),
        (foreign, "CA that isn't trusted"),
    ] {
        let why = tls("n1", credentials).unwrap_err().to_string();
        assert!(why.contains(says), "{why}");
    }
    let mut mixed = issued(&ours, &[member], 4000);
    mixed.own.key = issued(&ours, &[member], 4000).own.key;
    assert!(tls("n1", mixed).is_err(), "another's key");
}

#[tokio::test]
async fn a_new_certificate_holds_for_the_next_connection_and_a_broken_one_is_ignored() {
    let (old, new) = (ca("ours"), ca("theirs"));
    let n2 = member_tls(&old, "n2");
    let address = answering(Some(n2.clone())).await;
    let (stays, moves) = (member_tls(&old, "n1"), member_tls(&new, "n1"));
    calls(&address, Some(&stays)).await.unwrap();
    n2.replace(issued(&new, &["n3.member.ipamd.internal"], 4000)).unwrap_err();
    calls(&address, Some(&stays)).await.unwrap();
    n2.replace(issued(&new, &["n2.member.ipamd.internal"], 4000)).unwrap();
    calls(&address, Some(&stays)).await.unwrap_err();
    calls(&address, Some(&moves)).await.unwrap();
}

#[test]
fn the_end_of_a_certificate_is_seen_before_it_comes() {
    use std::time::Duration;

    let expires = |until_year, within| {
        let issued = issued(&ca("ours"), &["n1.member.ipamd.internal"], until_year);
        ipam_api::tls::expires_within(&issued.own.chain[0], within)
    };
    assert!(expires(2001, Duration::ZERO));
    assert!(!expires(4000, Duration::ZERO));
    assert!(!expires(4000, Duration::from_secs(3600)));
    assert!(expires(4000, Duration::from_secs(2_500 * 366 * 24 * 3600)));
}
