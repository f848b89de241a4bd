//! TLS between members: both sides show a certificate of one CA that names their member.
//!
//! **Invariant:** the name in a certificate is the only proof of identity; a client's or a node's certificate
//! of the same CA has no access here.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use std::{fmt, io};

use ipam_api::Name;
use ipam_api::certificate::Identity;
use ipam_api::limits::PEER_HANDSHAKE_MS_MAX;
use ipam_api::tls::{Credentials, TlsError, VERSIONS, expires_at_s, identity_of, in_io, provider, reason};
use rustls::client::Resumption;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use super::preface::Opening;
use super::stream::{self, PeerStream};

/// A member's certificate for the others, and the CAs that it trusts.
#[derive(Debug)]
pub struct PeerCredentials {
    /// This member's certificate and key.
    pub own: Credentials,
    /// The CAs of all members.
    pub roots: RootCertStore,
}

/// TLS of a member with its peers. Clones share it; its certificate may be replaced while it is used.
#[derive(Clone)]
pub struct PeerTls {
    member: Name,
    sides: Arc<RwLock<Arc<Sides>>>,
}

impl fmt::Debug for PeerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TLS of {}", self.member)
    }
}

/// TLS configurations of both roles of a connection.
struct Sides {
    acceptor: TlsAcceptor,
    connector: TlsConnector,
    /// The end of the certificate, in seconds since 1970.
    expires_at_s: Option<u64>,
}

impl PeerTls {
    /// TLS for the member of this name.
    ///
    /// # Errors
    /// When no other member would accept these credentials.
    pub fn new(member: &Name, credentials: PeerCredentials) -> Result<Self, TlsError> {
        let sides = Arc::new(RwLock::new(Arc::new(sides(member, credentials)?)));
        Ok(Self { member: member.clone(), sides })
    }

    /// Uses these credentials from now on; established connections keep the old ones.
    ///
    /// # Errors
    /// As [`PeerTls::new`]; the old credentials stay in use then.
    pub fn replace(&self, credentials: PeerCredentials) -> Result<(), TlsError> {
        let sides = Arc::new(sides(&self.member, credentials)?);
        *self.sides.write().unwrap_or_else(PoisonError::into_inner) = sides;
        Ok(())
    }

    /// The end of the certificate that members are shown, in seconds since 1970.
    #[must_use]
    pub fn expires_at_s(&self) -> Option<u64> {
        self.sides().expires_at_s
    }

    fn sides(&self) -> Arc<Sides> {
        self.sides.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Connects to the member of this name.
    pub(super) async fn call(&self, stream: TcpStream, member: &str) -> io::Result<PeerStream> {
        let other = Name::new(member).map_err(io::Error::other)?;
        let server_name = dns_name(&other).map_err(io::Error::other)?;
        let server_name = ServerName::try_from(server_name).map_err(io::Error::other)?;
        let stream = in_time(self.sides().connector.connect(server_name, stream)).await?;
        let stream = TlsStream::from(stream);
        // Stricter than what any TLS client checks: no wildcard, and no second name.
        match shown(&stream)? {
            Identity::Member { name } if name == other => Ok(stream::tls(stream)),
            identity => Err(refused(format!("its certificate is that of {identity}, not of {other}"))),
        }
    }

    /// Handshake of the called side; returns the caller.
    pub(super) async fn answer(&self, stream: TcpStream) -> io::Result<(PeerStream, Caller)> {
        let stream = in_time(self.sides().acceptor.accept(stream)).await?;
        let stream = TlsStream::from(stream);
        let identity = shown(&stream)?;
        Ok((stream::tls(stream), Caller::Certified(identity)))
    }
}

/// Caller, as far as the stream identifies it.
#[derive(Debug)]
pub(super) enum Caller {
    /// A process that needs no certificate: of this member's user, or at a port that was opened explicitly.
    Believed,
    /// The owner of this certificate.
    Certified(Identity),
}

impl Caller {
    /// Returns the objection against this opening of this caller, if any.
    pub(super) fn objection(&self, opening: &Opening) -> Option<String> {
        match (self, opening) {
            (Self::Believed, _) | (Self::Certified(Identity::Member { .. }), Opening::Hello) => None,
            (Self::Certified(Identity::Member { name }), Opening::Member(handshake)) => {
                let claimed = &handshake.from.name;
                (name.as_str() != claimed).then(|| {
                    format!(
                        "the certificate is that of member {name}, not of {}",
                        ipam_api::name::shown(claimed)
                    )
                })
            }
            (Self::Certified(identity), _) => {
                Some(format!("the certificate is that of {identity}; only members are answered here"))
            }
        }
    }
}

fn dns_name(member: &Name) -> Result<String, TlsError> {
    let identity = Identity::Member { name: member.clone() };
    identity.dns_name().map_err(|problem| TlsError::new(problem.detail))
}

pub(super) fn refused(why: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why.to_string())
}

/// Handshake with a time limit, and its error in words.
async fn in_time<T>(handshake: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    match timeout(Duration::from_millis(PEER_HANDSHAKE_MS_MAX), handshake).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(match in_io(&error) {
            Some(tls) => io::Error::new(error.kind(), format!("TLS: {}", reason(tls))),
            None if error.kind() == io::ErrorKind::UnexpectedEof => {
                io::Error::new(error.kind(), "it hung up in the TLS handshake; has it [peer_tls]?")
            }
            None => error,
        }),
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "no TLS handshake in time")),
    }
}

/// The identity in the other side's certificate, which has been verified.
fn shown(stream: &TlsStream<TcpStream>) -> io::Result<Identity> {
    let (_, connection) = stream.get_ref();
    let certificate = connection.peer_certificates().and_then(<[CertificateDer<'_>]>::first);
    let identity = certificate.map_or(Ok(None), identity_of).map_err(|error| refused(error.to_string()))?;
    identity.ok_or_else(|| refused("its certificate names no member".to_owned()))
}

fn sides(member: &Name, credentials: PeerCredentials) -> Result<Sides, TlsError> {
    let PeerCredentials { own, roots } = credentials;
    let wanted = dns_name(member)?;
    let found = match own.identity()? {
        Some(Identity::Member { name }) if name == *member => None,
        Some(other) => Some(format!("is that of {other}")),
        None => Some("names no member".to_owned()),
    };
    if let Some(found) = found {
        return Err(TlsError::new(format!("the certificate {found}; it must be for {wanted}")));
    }
    let wrong = |error: rustls::Error| TlsError::new(reason(&error));
    let roots = Arc::new(roots);
    let verifier = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider())
        .build()
        .map_err(|error| TlsError::new(error.to_string()))?;
    let expires_at_s = own.chain.first().and_then(expires_at_s);
    if let Some((certificate, between)) = own.chain.split_first() {
        verifier
            .verify_client_cert(certificate, between, UnixTime::now())
            .map_err(|error| TlsError::new(format!("no member would accept this one: {}", reason(&error))))?;
    }
    let mut server = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(VERSIONS)
        .map_err(wrong)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(own.chain.clone(), own.key.clone_key())
        .map_err(wrong)?;
    // A resumed session would show no certificate, and an expired certificate must not open anything.
    server.session_storage = Arc::new(NoServerSessionStorage {});
    server.send_tls13_tickets = 0;
    let mut client = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(VERSIONS)
        .map_err(wrong)?
        .with_root_certificates(roots)
        .with_client_auth_cert(own.chain, own.key)
        .map_err(wrong)?;
    client.resumption = Resumption::disabled();
    Ok(Sides {
        acceptor: TlsAcceptor::from(Arc::new(server)),
        connector: TlsConnector::from(Arc::new(client)),
        expires_at_s,
    })
}
