//! TLS with clients: the presented certificate, and the verification of client certificates.

use std::sync::{Arc, PoisonError, RwLock};
use std::{fmt, io};

use ipam_api::tls::{
    Credentials, TlsError, VERSIONS, expires_at_s, identity_of, provider, reason, spiffe_id_of,
};
use rustls::server::{NoClientAuth, NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::protocols::HttpVersion;
use crate::http::request::ClientName;

/// HTTP/2 in ALPN.
const HTTP_2: &[u8] = b"h2";

/// Result of a handshake.
pub(super) struct Handshake {
    pub(super) stream: TlsStream<TcpStream>,
    /// HTTP version that client and server negotiated.
    pub(super) version: HttpVersion,
    /// Name in the client's certificate, if it has one.
    pub(super) name: Option<ClientName>,
}

/// TLS with clients. Clones share the certificates, which may be replaced while in use.
#[derive(Clone)]
pub struct ClientTls {
    names: Names,
    current: Arc<RwLock<ServerTlsConfig>>,
}

/// Names that a listener reads in client certificates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// DNS names of clients and nodes of ipamd, in certificates that clients may have.
    Ipamd,
    /// SPIFFE ids, which every client must have.
    Spiffe,
}

/// Configuration for new connections, with the expiry of the certificate in it.
#[derive(Clone)]
struct ServerTlsConfig {
    config: Arc<ServerConfig>,
    expires_at_s: Option<u64>,
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientTls")
    }
}

impl ClientTls {
    /// Presents `own`, and reads these names in client certificates.
    ///
    /// The certificates must be issued by `client_roots`. Without `client_roots` none is requested.
    ///
    /// # Errors
    /// If the certificate doesn't match its key, no CA is usable, or SPIFFE ids have no CA.
    pub fn new(
        names: Names,
        own: Credentials,
        client_roots: Option<RootCertStore>,
    ) -> Result<Self, TlsError> {
        let config = ServerTlsConfig::new(names, own, client_roots)?;
        Ok(Self { names, current: Arc::new(RwLock::new(config)) })
    }

    /// Replaces the certificate and the CAs for new connections. Open connections are not affected.
    ///
    /// # Errors
    /// As [`ClientTls::new`]. After an error the old configuration stays.
    pub fn replace(&self, own: Credentials, client_roots: Option<RootCertStore>) -> Result<(), TlsError> {
        let config = ServerTlsConfig::new(self.names, own, client_roots)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }

    fn current(&self) -> ServerTlsConfig {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Expiry of the presented certificate, in seconds since 1970.
    #[must_use]
    pub fn expires_at_s(&self) -> Option<u64> {
        self.current().expires_at_s
    }

    /// Performs the handshake.
    pub(super) async fn answer(&self, stream: TcpStream) -> io::Result<Handshake> {
        let stream = TlsAcceptor::from(self.current().config).accept(stream).await?;
        let session = stream.get_ref().1;
        let version = match session.alpn_protocol() {
            Some(HTTP_2) => HttpVersion::Two,
            _ => HttpVersion::One,
        };
        let shown = session.peer_certificates().and_then(<[_]>::first);
        let name = match (shown, self.names) {
            (None, _) => Ok(None),
            (Some(shown), Names::Ipamd) => {
                identity_of(shown).map(|identity| identity.and_then(ClientName::of))
            }
            (Some(shown), Names::Spiffe) => match spiffe_id_of(shown) {
                Ok(Some(id)) => Ok(Some(ClientName::Spiffe { id })),
                Ok(None) => Err(TlsError::new("the client's certificate has no SPIFFE id")),
                Err(error) => Err(error),
            },
        };
        let name = name.map_err(|error| io::Error::new(io::ErrorKind::PermissionDenied, error))?;
        Ok(Handshake { stream, version, name })
    }
}

impl ServerTlsConfig {
    fn new(names: Names, own: Credentials, client_roots: Option<RootCertStore>) -> Result<Self, TlsError> {
        let expires_at_s = own.chain.first().and_then(expires_at_s);
        Ok(Self { config: Arc::new(server_config(names, own, client_roots)?), expires_at_s })
    }
}

fn server_config(
    names: Names,
    own: Credentials,
    client_roots: Option<RootCertStore>,
) -> Result<ServerConfig, TlsError> {
    let wrong =
        |error: rustls::Error| TlsError::new(format!("the certificate can't be used: {}", reason(&error)));
    let builder =
        ServerConfig::builder_with_provider(provider()).with_protocol_versions(VERSIONS).map_err(wrong)?;
    let builder = match client_roots {
        None if names == Names::Spiffe => return Err(TlsError::new("SPIFFE ids need the CA of the clients")),
        None => builder.with_client_cert_verifier(Arc::new(NoClientAuth)),
        Some(roots) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider());
            let verifier = match names {
                Names::Ipamd => verifier.allow_unauthenticated(),
                Names::Spiffe => verifier,
            };
            let unusable = |error| TlsError::new(format!("the clients' CA can't be used: {error}"));
            builder.with_client_cert_verifier(verifier.build().map_err(unusable)?)
        }
    };
    let mut config = builder.with_single_cert(own.chain, own.key).map_err(wrong)?;
    config.alpn_protocols = vec![HTTP_2.to_vec(), b"http/1.1".to_vec()];
    // A resumed session presents no certificate again, so an expired or untrusted one would stay accepted.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}
