//! TLS of a listener: version of HTTP, and names in client certificates.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use ipam_api::resolve::connect;
use ipam_api::tls::{Credentials, TlsError, VERSIONS, provider};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, DnValue, IsCa, KeyPair, SanType,
    date_time_ymd,
};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::Protocols;
use super::server::{Listener, serve_with};
use super::tls::{ClientTls, Names};
use crate::http::request::Peer;

const LONG: Duration = Duration::from_secs(30);
const PROXY: &str = "spiffe://example.org/ns/default/sa/proxy";
const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: y\r\nconnection: close\r\n\r\n";

type Ca = CertifiedIssuer<'static, KeyPair>;

fn ca(name: &str) -> Ca {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, DnValue::Utf8String(name.to_owned()));
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn roots(ca: &Ca) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(ca.der().clone()).unwrap();
    roots
}

fn dns(name: &str) -> CertificateParams {
    CertificateParams::new([name.to_owned()]).unwrap()
}

fn uris(uris: &[&str]) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.subject_alt_names = uris.iter().map(|uri| SanType::URI((*uri).try_into().unwrap())).collect();
    params
}

fn issued(ca: &Ca, params: &CertificateParams) -> Credentials {
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, ca).unwrap();
    Credentials { chain: vec![certificate.der().clone()], key: key.into() }
}

/// A listener that answers each request with its version and its peer.
async fn listen(tls: ClientTls) -> (SocketAddr, watch::Sender<bool>) {
    listen_with(Protocols::grpc(), tls).await
}

async fn listen_with(protocols: Protocols, tls: ClientTls) -> (SocketAddr, watch::Sender<bool>) {
    let router = Router::new().fallback(|request: Request| async move {
        format!("{:?} {:?}", request.version(), request.extensions().get::<Peer>().unwrap())
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopping) = watch::channel(false);
    let listener = Listener::Network { listener, tls: Some(tls) };
    tokio::spawn(serve_with(protocols, listener, 99, router, stopping));
    (address, stop)
}

async fn handshake(
    to: SocketAddr,
    ca: &Ca,
    alpn: &[&str],
    own: Option<Credentials>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let config = ClientConfig::builder_with_provider(provider()).with_protocol_versions(VERSIONS).unwrap();
    let config = config.with_root_certificates(roots(ca));
    let mut config = match own {
        None => config.with_no_client_auth(),
        Some(own) => config.with_client_auth_cert(own.chain, own.key).unwrap(),
    };
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    let stream = connect(&to.to_string()).await.unwrap();
    TlsConnector::from(Arc::new(config)).connect("localhost".try_into().unwrap(), stream).await
}

/// Answer to a client, or none if its connection is closed without one.
async fn asked(to: SocketAddr, ca: &Ca, own: Option<Credentials>) -> Option<String> {
    let exchange = async {
        let mut stream = handshake(to, ca, &["http/1.1"], own).await.ok()?;
        stream.write_all(GET).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        (!answer.is_empty()).then_some(answer)
    };
    timeout(LONG, exchange).await.unwrap()
}

#[tokio::test]
async fn tls_chooses_the_version_that_the_client_knows() {
    let ca = ca("ca");
    let (to, _stop) =
        listen(ClientTls::new(Names::Ipamd, issued(&ca, &dns("localhost")), None).unwrap()).await;
    for (offered, chosen) in [
        (&[][..], None),
        (&["http/1.1"], Some("http/1.1")),
        (&["h2"], Some("h2")),
        (&["http/1.1", "h2"], Some("h2")),
    ] {
        let mut stream = handshake(to, &ca, offered, None).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), chosen.map(str::as_bytes), "{offered:?}");
        if chosen == Some("h2") {
            let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
            tokio::spawn(connection);
            let request = axum::http::Request::get("https://localhost/").body(()).unwrap();
            let (response, _) = client.send_request(request, true).unwrap();
            let mut body = timeout(LONG, response).await.unwrap().unwrap().into_body();
            assert!(body.data().await.unwrap().unwrap().starts_with(b"HTTP/2.0 "));
        } else {
            stream.write_all(GET).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("HTTP/1.1 Tcp"), "{answer}");
        }
    }
    assert!(handshake(to, &ca, &["h3"], None).await.is_err());
}

#[tokio::test]
async fn red_team_half_an_opening_after_tls_is_hung_up_on() {
    let ca = ca("ca");
    let protocols = Protocols { head_read_max: Duration::from_millis(100), ..Protocols::grpc() };
    let tls = ClientTls::new(Names::Ipamd, issued(&ca, &dns("localhost")), None).unwrap();
    let (to, _stop) = listen_with(protocols, tls).await;
    for begin in [&b""[..], b"PRI * HTTP", GET] {
        let mut stream = handshake(to, &ca, &["h2"], None).await.unwrap();
        stream.write_all(begin).await.unwrap();
        let mut answer = Vec::new();
        // Without a close of TLS, the end is an error.
        let _ = timeout(LONG, stream.read_to_end(&mut answer)).await.expect("it is served for ever");
        assert!(answer.is_empty(), "{begin:?}: {answer:?}");
    }
}

#[tokio::test]
async fn a_listener_of_spiffe_ids_names_its_clients_by_them() {
    let ca = ca("trust domain");
    let own = || issued(&ca, &uris(&["spiffe://example.org/ipam"]));
    let mut server = dns("localhost");
    server.subject_alt_names.extend(uris(&["spiffe://example.org/ipam"]).subject_alt_names);
    let tls = ClientTls::new(Names::Spiffe, issued(&ca, &server), Some(roots(&ca))).unwrap();
    let (to, _stop) = listen(tls.clone()).await;
    let answer = asked(to, &ca, Some(issued(&ca, &uris(&[PROXY])))).await.unwrap();
    assert!(
        answer.contains(&format!("certificate: Some(Spiffe {{ id: SpiffeId(\"{PROXY}\") }})")),
        "{answer}"
    );
    // Another certificate and CA, as a helper of SPIFFE replaces them.
    let other = self::ca("other");
    tls.replace(issued(&other, &server), Some(roots(&other))).unwrap();
    assert!(asked(to, &other, Some(issued(&other, &uris(&[PROXY])))).await.is_some());
    assert!(asked(to, &other, Some(own())).await.is_none());
    let none: Result<(), TlsError> = tls.replace(issued(&ca, &server), None);
    assert!(none.unwrap_err().to_string().contains("need the CA"));
    assert!(ClientTls::new(Names::Spiffe, own(), None).is_err());
}

#[tokio::test]
async fn red_team_clients_without_one_good_spiffe_id_are_not_served() {
    let ca = ca("trust domain");
    let tls = ClientTls::new(Names::Spiffe, issued(&ca, &dns("localhost")), Some(roots(&ca))).unwrap();
    let (to, _stop) = listen(tls).await;
    let mut expired = uris(&[PROXY]);
    expired.not_before = date_time_ymd(2001, 1, 1);
    expired.not_after = date_time_ymd(2002, 1, 1);
    for (own, what) in [
        (None, "no certificate"),
        (Some(issued(&self::ca("trust domain"), &uris(&[PROXY]))), "another CA"),
        (Some(issued(&ca, &expired)), "expired"),
        (Some(issued(&ca, &dns("alice.client.ipamd.internal"))), "a name of ipamd"),
        (Some(issued(&ca, &uris(&["https://example.org/x"]))), "another URI"),
        (Some(issued(&ca, &uris(&[PROXY, "spiffe://example.org/x"]))), "two ids"),
        (Some(issued(&ca, &uris(&["spiffe://example.org"]))), "no path"),
    ] {
        assert_eq!(asked(to, &ca, own).await, None, "{what}");
    }
    assert!(asked(to, &ca, Some(issued(&ca, &uris(&[PROXY])))).await.is_some());
}

#[tokio::test]
async fn a_spiffe_id_has_no_meaning_for_other_listeners() {
    let ca = ca("ca");
    let tls = ClientTls::new(Names::Ipamd, issued(&ca, &dns("localhost")), Some(roots(&ca))).unwrap();
    let (to, _stop) = listen(tls).await;
    for own in [None, Some(issued(&ca, &uris(&[PROXY])))] {
        let answer = asked(to, &ca, own).await.unwrap();
        assert!(answer.ends_with("certificate: None }"), "{answer}");
    }
    let mut both = dns("alice.client.ipamd.internal");
    both.subject_alt_names.extend(uris(&[PROXY]).subject_alt_names);
    let answer = asked(to, &ca, Some(issued(&ca, &both))).await.unwrap();
    assert!(answer.contains("Client { name"), "{answer}");
}
