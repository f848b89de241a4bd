//! TLS 1.3 with ring, for all programs, and certificates and keys in PEM files.

use std::fmt;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::{AlertDescription, CertificateError as Why, Error, InvalidMessage};
use rustls::{RootCertStore, SupportedProtocolVersion};
use webpki::{EndEntityCert, KeyUsage};

use crate::certificate::Identity;
use crate::limits::PEM_BYTES_MAX;

mod spiffe;

pub use self::spiffe::{spiffe_client_config, spiffe_id_of};

/// Supported versions of TLS.
pub const VERSIONS: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13];

/// Unusable certificates or keys, with the reason. Contains no part of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsError(String);

impl TlsError {
    /// Error with this message.
    #[must_use]
    pub fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TlsError {}

/// Provider of the cryptography (ring).
#[must_use]
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Certificate with its intermediates, and its private key.
#[derive(Debug)]
pub struct Credentials {
    /// The certificate first, then the intermediates.
    pub chain: Vec<CertificateDer<'static>>,
    /// Private key of the certificate.
    pub key: PrivateKeyDer<'static>,
}

impl Credentials {
    /// Reads the certificates and the key from PEM files.
    ///
    /// # Errors
    /// For a file that can't be read, or has other contents.
    pub fn read(certificate_file: &Path, key_file: &Path) -> Result<Self, TlsError> {
        let chain = read_certificates(certificate_file)?;
        let key = PrivateKeyDer::from_pem_slice(&read_file(key_file)?)
            .map_err(|_| TlsError(format!("{} has no private key in PEM", key_file.display())))?;
        Ok(Self { chain, key })
    }

    /// Subject that the certificate identifies.
    ///
    /// # Errors
    /// As [`identity_of`].
    pub fn identity(&self) -> Result<Option<Identity>, TlsError> {
        self.chain.first().map_or(Ok(None), identity_of)
    }
}

/// True if a certificate has expired, or expires within `time`.
#[must_use]
pub fn expires_within(certificate: &CertificateDer<'_>, time: Duration) -> bool {
    let Ok(now) = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) else { return false };
    expires_at_s(certificate).is_some_and(|at_s| at_s < (now + time).as_secs())
}

/// Expiry of a certificate, in seconds since 1970; none if it can't be parsed.
#[must_use]
pub fn expires_at_s(certificate: &CertificateDer<'_>) -> Option<u64> {
    let algorithms = provider().signature_verification_algorithms.all;
    // No certificate is valid for so long, so the check of the validity, which precedes all others, fails
    // with the expiry. Nothing is trusted here.
    let never = UnixTime::since_unix_epoch(Duration::from_secs(u64::from(u32::MAX) << 8));
    let certificate = EndEntityCert::try_from(certificate).ok()?;
    match certificate.verify_for_usage(algorithms, &[], &[], never, KeyUsage::server_auth(), None, None) {
        Err(webpki::Error::CertExpired { not_after, .. }) => Some(not_after.as_secs()),
        _ => None,
    }
}

/// Reads certificates.
///
/// # Errors
/// For a file that can't be read, or has none.
pub fn read_certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let pem = read_file(file)?;
    let none = || TlsError(format!("{} has no certificate in PEM", file.display()));
    let certificates: Vec<_> =
        CertificateDer::pem_slice_iter(&pem).collect::<Result<_, _>>().map_err(|_| none())?;
    if certificates.is_empty() { Err(none()) } else { Ok(certificates) }
}

/// Reads the certificates of CAs.
///
/// # Errors
/// For a file that can't be read, or has other contents.
pub fn read_roots(file: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates(file)? {
        roots
            .add(certificate)
            .map_err(|error| TlsError(format!("{} has no usable CA: {}", file.display(), reason(&error))))?;
    }
    Ok(roots)
}

/// Subject that a certificate identifies. The caller must have verified the certificate.
///
/// # Errors
/// For a certificate that can't be read, or that identifies several subjects.
pub fn identity_of(certificate: &CertificateDer<'_>) -> Result<Option<Identity>, TlsError> {
    let certificate = EndEntityCert::try_from(certificate)
        .map_err(|error| TlsError(format!("the certificate can't be read: {error}")))?;
    Identity::of(certificate.valid_dns_names()).map_err(|ambiguous| TlsError(ambiguous.to_string()))
}

/// Describes a TLS error with its usual cause.
#[must_use]
pub fn reason(error: &Error) -> String {
    let known = match error {
        Error::InvalidCertificate(why) => match why {
            Why::UnknownIssuer => "its certificate is of a CA that isn't trusted here",
            Why::BadSignature => {
                "its certificate is of another CA than the one that is trusted here by that name"
            }
            Why::Expired | Why::ExpiredContext { .. } => "its certificate has expired",
            Why::NotValidYet | Why::NotValidYetContext { .. } => {
                "its certificate isn't valid yet; are the clocks right?"
            }
            Why::NotValidForName | Why::NotValidForNameContext { .. } => {
                "its certificate is for another name"
            }
            Why::Other(why) => return format!("its certificate can't be accepted: {why}"),
            other => return format!("its certificate can't be accepted: {other}"),
        },
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => "it doesn't speak TLS",
        Error::NoCertificatesPresented => "it showed no certificate",
        Error::AlertReceived(alert) => return format!("it refused the TLS handshake ({alert:?})"),
        other => return other.to_string(),
    };
    known.to_owned()
}

/// True if the server's alert rejects the client's certificate, or the lack of one.
#[must_use]
pub fn is_about_certificates(alert: AlertDescription) -> bool {
    matches!(
        alert,
        AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied
            | AlertDescription::DecryptError
            | AlertDescription::CertificateRequired
    )
}

/// TLS error inside an I/O error, if any.
#[must_use]
pub fn in_io(error: &std::io::Error) -> Option<&Error> {
    let inner = error.get_ref()?;
    // hyper-rustls wraps the TLS error twice.
    inner.downcast_ref().or_else(|| inner.downcast_ref().and_then(in_io))
}

fn read_file(file: &Path) -> Result<Vec<u8>, TlsError> {
    let wrong = |why: &dyn fmt::Display| TlsError(format!("{} can't be read: {why}", file.display()));
    let mut content = Vec::new();
    let opened = std::fs::File::open(file).map_err(|error| wrong(&error))?;
    let read = opened.take(PEM_BYTES_MAX + 1).read_to_end(&mut content);
    match read {
        Err(error) => Err(wrong(&error)),
        Ok(_) if content.len() as u64 > PEM_BYTES_MAX => Err(wrong(&"it is too large")),
        Ok(_) => Ok(content),
    }
}
