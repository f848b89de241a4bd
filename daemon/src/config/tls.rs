//! Paths of certificates and keys: `[tls]` for clients, `[peer_tls]` for the other members.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use ipam_api::Name;
use ipam_api::tls::{Credentials, TlsError, expires_within, read_roots};
use ipam_raft::node::{PeerCredentials, PeerTls};
use serde::{Deserialize, Serialize};

use super::error::{ConfigError, wrong};
use crate::http::connection::tls::{ClientTls, Names};

/// Time before the expiry of a certificate at which warnings begin.
pub(super) const RENEW_WITHIN: Duration = Duration::from_secs(14 * 24 * 3600);

/// `[tls]` of the configuration file, and its flags.
#[derive(Debug, Clone, Default, Args, Deserialize, Serialize)]
#[command(next_help_heading = "TLS")]
#[serde(deny_unknown_fields)]
pub(super) struct FileTls {
    /// Certificate of this member for clients (PEM).
    #[arg(id = "tls-certificate", long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// Key of that certificate.
    #[arg(id = "tls-key", long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// CAs of client certificates (PEM).
    #[arg(id = "tls-client-ca", long, value_name = "FILE")]
    client_ca: Option<PathBuf>,
}

/// `[peer_tls]` of the configuration file, and its flags.
#[derive(Debug, Clone, Default, Args, Deserialize, Serialize)]
#[command(next_help_heading = "TLS")]
#[serde(deny_unknown_fields)]
pub(super) struct FilePeerTls {
    /// Certificate of this member for other members (PEM).
    #[arg(id = "peer-tls-certificate", long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// Key of that certificate.
    #[arg(id = "peer-tls-key", long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// CA of all members (PEM).
    #[arg(id = "peer-tls-ca", long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

/// TLS for clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientTlsFiles {
    /// Certificate that this member presents to clients.
    pub certificate: PathBuf,
    /// Key of the certificate.
    pub key: PathBuf,
    /// CAs of client certificates; if absent, clients are not requested to present a certificate.
    pub client_ca: Option<PathBuf>,
}

/// TLS among members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerTlsFiles {
    /// The certificate that names this member.
    pub certificate: PathBuf,
    /// Key of the certificate.
    pub key: PathBuf,
    /// The CAs of all members.
    pub ca: PathBuf,
}

impl ClientTlsFiles {
    /// Checks the file names of a section. Returns none if TLS is not configured.
    pub(super) fn complete(section: &str, given: FileTls) -> Result<Option<Self>, ConfigError> {
        let missing = |key: &str| {
            wrong(&format!("{section}.{key}"), "it is missing; TLS needs a certificate and its key")
        };
        let client_ca = named(given.client_ca);
        match (named(given.certificate), named(given.key)) {
            (Some(certificate), Some(key)) => Ok(Some(Self { certificate, key, client_ca })),
            (None, None) if client_ca.is_none() => Ok(None),
            (None, _) => Err(missing("certificate")),
            (_, None) => Err(missing("key")),
        }
    }

    /// Reads the files, and warns of a certificate that expires soon.
    ///
    /// # Errors
    /// For a file that can't be used.
    pub fn read(&self) -> Result<(Credentials, Option<rustls::RootCertStore>), TlsError> {
        let (own, client_roots) = self.read_rotated()?;
        warn_in_time(&self.certificate, &own);
        Ok((own, client_roots))
    }

    /// Reads files that a program rotates, whose certificates always expire soon.
    ///
    /// # Errors
    /// For a file that can't be used.
    pub fn read_rotated(&self) -> Result<(Credentials, Option<rustls::RootCertStore>), TlsError> {
        let client_roots = self.client_ca.as_deref().map(read_roots).transpose()?;
        Ok((Credentials::read(&self.certificate, &self.key)?, client_roots))
    }

    /// Reads the files, ready for use.
    ///
    /// # Errors
    /// For a file that can't be used.
    pub fn load(&self) -> Result<ClientTls, TlsError> {
        let (own, client_roots) = self.read()?;
        ClientTls::new(Names::Ipamd, own, client_roots)
    }

    /// Reads files that a program rotates, ready for clients with SPIFFE ids.
    ///
    /// # Errors
    /// For a file that can't be used.
    pub fn load_rotated(&self) -> Result<ClientTls, TlsError> {
        let (own, client_roots) = self.read_rotated()?;
        ClientTls::new(Names::Spiffe, own, client_roots)
    }
}

impl PeerTlsFiles {
    pub(super) fn complete(given: FilePeerTls) -> Result<Option<Self>, ConfigError> {
        match (named(given.certificate), named(given.key), named(given.ca)) {
            (None, None, None) => Ok(None),
            (Some(certificate), Some(key), Some(ca)) => Ok(Some(Self { certificate, key, ca })),
            (certificate, key, _) => {
                let missing = match (certificate, key) {
                    (None, _) => "peer_tls.certificate",
                    (_, None) => "peer_tls.key",
                    _ => "peer_tls.ca",
                };
                Err(wrong(
                    missing,
                    "it is missing; members need a certificate, its key, and the CA of all members",
                ))
            }
        }
    }

    /// Reads the files.
    ///
    /// # Errors
    /// For a file that can't be used.
    pub fn read(&self) -> Result<PeerCredentials, TlsError> {
        let own = Credentials::read(&self.certificate, &self.key)?;
        warn_in_time(&self.certificate, &own);
        Ok(PeerCredentials { own, roots: read_roots(&self.ca)? })
    }

    /// Reads the files, ready for use by the member of this name.
    ///
    /// # Errors
    /// For a file that can't be used, or a certificate that other members would not accept.
    pub fn load(&self, member: &Name) -> Result<PeerTls, TlsError> {
        let in_file = |error| TlsError::new(format!("{}: {error}", self.certificate.display()));
        PeerTls::new(member, self.read()?).map_err(in_file)
    }
}

/// Logs a warning about a certificate that has expired or expires soon. The member starts all the same, since
/// it can still serve its peers.
fn warn_in_time(file: &Path, own: &Credentials) {
    let Some(certificate) = own.chain.first() else { return };
    let file = file.display();
    if expires_within(certificate, Duration::ZERO) {
        tracing::warn!(%file, "the certificate has expired; renew it, then send SIGHUP");
    } else if expires_within(certificate, RENEW_WITHIN) {
        tracing::warn!(%file, "the certificate expires within two weeks; renew it, then send SIGHUP");
    }
}

/// Returns the path unless it is empty.
fn named(path: Option<PathBuf>) -> Option<PathBuf> {
    path.filter(|path| path != Path::new(""))
}
