//! Where certificates and keys are: `[tls]` for clients, `[peer_tls]` for the other members.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use ipam_api::Name;
use ipam_api::tls::{Credentials, TlsError, expires_within, read_roots};
use ipam_raft::node::{PeerCredentials, PeerTls};
use serde::{Deserialize, Serialize};

use super::error::{ConfigError, wrong};
use crate::http::connection::tls::ClientTls;

/// How long before its end a certificate is spoken of.
pub(super) const RENEW_WITHIN: Duration = Duration::from_secs(14 * 24 * 3600);

/// Flags of both.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "TLS")]
pub(super) struct TlsFlags {
    /// This member's certificate for clients (PEM).
    #[arg(long, value_name = "FILE")]
    tls_certificate: Option<PathBuf>,
    /// Its key.
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// The CAs whose certificates clients may show.
    #[arg(long, value_name = "FILE")]
    tls_client_ca: Option<PathBuf>,
    /// This member's certificate for the other members (PEM).
    #[arg(long, value_name = "FILE")]
    peer_tls_certificate: Option<PathBuf>,
    /// Its key.
    #[arg(long, value_name = "FILE")]
    peer_tls_key: Option<PathBuf>,
    /// The CA of all members.
    #[arg(long, value_name = "FILE")]
    peer_tls_ca: Option<PathBuf>,
}

impl TlsFlags {
    /// The keys of the file, and whether a flag says something for them.
    pub(super) fn said(&self) -> [(&'static str, bool); 6] {
        [
            ("tls.certificate", self.tls_certificate.is_some()),
            ("tls.key", self.tls_key.is_some()),
            ("tls.client_ca", self.tls_client_ca.is_some()),
            ("peer_tls.certificate", self.peer_tls_certificate.is_some()),
            ("peer_tls.key", self.peer_tls_key.is_some()),
            ("peer_tls.ca", self.peer_tls_ca.is_some()),
        ]
    }
}

/// `[tls]` of the configuration file.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileTls {
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    client_ca: Option<PathBuf>,
}

/// `[peer_tls]` of the configuration file.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FilePeerTls {
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    ca: Option<PathBuf>,
}

/// What the environment says of both.
#[derive(Debug, Default)]
pub(super) struct EnvironmentTls {
    clients: FileTls,
    peers: FilePeerTls,
}

impl EnvironmentTls {
    /// Takes a setting, named without our prefix; false if it isn't one of these.
    pub(super) fn take(&mut self, setting: &str, value: &str) -> bool {
        let place = match setting {
            "TLS_CERTIFICATE" => &mut self.clients.certificate,
            "TLS_KEY" => &mut self.clients.key,
            "TLS_CLIENT_CA" => &mut self.clients.client_ca,
            "PEER_TLS_CERTIFICATE" => &mut self.peers.certificate,
            "PEER_TLS_KEY" => &mut self.peers.key,
            "PEER_TLS_CA" => &mut self.peers.ca,
            _ => return false,
        };
        *place = Some(value.into());
        true
    }
}

/// TLS for clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientTlsFiles {
    /// The certificate that clients are shown.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// The CAs whose certificates clients may show; without it they are not asked for any.
    pub client_ca: Option<PathBuf>,
}

/// TLS among members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerTlsFiles {
    /// The certificate that names this member.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// The CAs of all members.
    pub ca: PathBuf,
}

impl ClientTlsFiles {
    pub(super) fn merge(
        flags: &TlsFlags,
        environment: &EnvironmentTls,
        file: &FileTls,
    ) -> Result<Option<Self>, ConfigError> {
        let environment = &environment.clients;
        let certificate = first(&flags.tls_certificate, &environment.certificate, &file.certificate);
        let key = first(&flags.tls_key, &environment.key, &file.key);
        let client_ca = first(&flags.tls_client_ca, &environment.client_ca, &file.client_ca);
        match (certificate, key) {
            (Some(certificate), Some(key)) => Ok(Some(Self { certificate, key, client_ca })),
            (None, None) if client_ca.is_none() => Ok(None),
            (None, _) => Err(wrong("tls.certificate", "it is missing; TLS needs a certificate and its key")),
            (_, None) => Err(wrong("tls.key", "it is missing; TLS needs a certificate and its key")),
        }
    }

    /// Reads the files.
    ///
    /// # Errors
    /// For one that can't be used.
    pub fn read(&self) -> Result<(Credentials, Option<rustls::RootCertStore>), TlsError> {
        let client_roots = self.client_ca.as_deref().map(read_roots).transpose()?;
        let own = Credentials::read(&self.certificate, &self.key)?;
        warn_in_time(&self.certificate, &own);
        Ok((own, client_roots))
    }

    /// Reads the files, ready for use.
    ///
    /// # Errors
    /// For one that can't be used.
    pub fn load(&self) -> Result<ClientTls, TlsError> {
        let (own, client_roots) = self.read()?;
        ClientTls::new(own, client_roots)
    }
}

impl PeerTlsFiles {
    pub(super) fn merge(
        flags: &TlsFlags,
        environment: &EnvironmentTls,
        file: &FilePeerTls,
    ) -> Result<Option<Self>, ConfigError> {
        let environment = &environment.peers;
        let certificate = first(&flags.peer_tls_certificate, &environment.certificate, &file.certificate);
        let key = first(&flags.peer_tls_key, &environment.key, &file.key);
        let ca = first(&flags.peer_tls_ca, &environment.ca, &file.ca);
        match (certificate, key, ca) {
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
    /// For one that can't be used.
    pub fn read(&self) -> Result<PeerCredentials, TlsError> {
        let own = Credentials::read(&self.certificate, &self.key)?;
        warn_in_time(&self.certificate, &own);
        Ok(PeerCredentials { own, roots: read_roots(&self.ca)? })
    }

    /// Reads the files, ready for use by the member of this name.
    ///
    /// # Errors
    /// For one that can't be used, or that other members wouldn't accept.
    pub fn load(&self, member: &Name) -> Result<PeerTls, TlsError> {
        let in_file = |error| TlsError::new(format!("{}: {error}", self.certificate.display()));
        PeerTls::new(member, self.read()?).map_err(in_file)
    }
}

/// Says so in the log while there is still time to renew it, and afterwards too: a member whose clients can't
/// believe it any more is still a member.
fn warn_in_time(file: &Path, own: &Credentials) {
    let Some(certificate) = own.chain.first() else { return };
    let file = file.display();
    if expires_within(certificate, Duration::ZERO) {
        tracing::warn!(%file, "the certificate has expired; renew it, then send SIGHUP");
    } else if expires_within(certificate, RENEW_WITHIN) {
        tracing::warn!(%file, "the certificate expires within two weeks; renew it, then send SIGHUP");
    }
}

fn first(flag: &Option<PathBuf>, environment: &Option<PathBuf>, file: &Option<PathBuf>) -> Option<PathBuf> {
    [flag, environment, file].into_iter().flatten().find(|path| **path != Path::new("")).cloned()
}
