//! Certificates of the front end, read again when their files change.
//!
//! spiffe-helper and cert-manager replace files without a signal, and SPIFFE certificates live for an hour.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use ipam_api::tls::{TlsError, expires_within, spiffe_client_config};
use rustls::ClientConfig;

use crate::config::ClientTlsFiles;
use crate::http::connection::tls::ClientTls;

/// Interval in which the files are checked.
const INTERVAL: Duration = Duration::from_secs(10);

/// Certificates in use, and their files. Clones share the certificates.
#[derive(Debug, Clone)]
pub(super) struct Certificates {
    files: Arc<RwLock<ClientTlsFiles>>,
    /// State of the files before the first read.
    first: Vec<Mark>,
    clients: ClientTls,
    servers: Arc<RwLock<Arc<ClientConfig>>>,
}

impl Certificates {
    /// Reads the files.
    ///
    /// # Errors
    /// For a file that can't be used.
    pub(super) fn load(files: &ClientTlsFiles) -> Result<Self, TlsError> {
        // Taken before the read, so that a concurrent replacement counts as a change.
        let first = marks(files);
        let servers = Arc::new(RwLock::new(Arc::new(with_servers(files)?)));
        let clients = files.load_rotated()?;
        Ok(Self { files: Arc::new(RwLock::new(files.clone())), first, clients, servers })
    }

    /// TLS with servers.
    pub(super) fn of_client(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.servers.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// TLS with clients.
    pub(super) fn clients(&self) -> ClientTls {
        self.clients.clone()
    }

    /// Reads files again. If one can't be used, the old certificates stay in use.
    ///
    /// # Errors
    /// The reason.
    pub(super) fn replace(&self, files: &ClientTlsFiles) -> Result<(), String> {
        let (own, client_roots) = files.read_rotated().map_err(|error| error.to_string())?;
        if own.chain.first().is_some_and(|certificate| expires_within(certificate, Duration::ZERO)) {
            return Err(format!("{} has expired", files.certificate.display()));
        }
        let servers = with_servers(files).map_err(|error| error.to_string())?;
        self.clients.replace(own, client_roots).map_err(|error| error.to_string())?;
        *self.servers.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(servers);
        self.files.write().unwrap_or_else(PoisonError::into_inner).clone_from(files);
        Ok(())
    }

    /// Reads the files again whenever they change, until the future is dropped.
    pub(super) async fn follow(self) {
        self.follow_every(INTERVAL).await;
    }

    async fn follow_every(self, interval: Duration) {
        let mut changes = Changes { read: self.first.clone(), refused: None };
        loop {
            let of_files = self.clone();
            let work = move || {
                let files = of_files.files.read().unwrap_or_else(PoisonError::into_inner).clone();
                changes.follow(marks(&files), || of_files.replace(&files));
                changes
            };
            // Neither a slow disk nor the parsing of a key must delay requests.
            match tokio::task::spawn_blocking(work).await {
                Ok(now) => changes = now,
                Err(_) => return,
            }
            tokio::time::sleep(interval).await;
        }
    }
}

/// TLS with servers. Any certificate of the CA with a SPIFFE id is accepted.
fn with_servers(files: &ClientTlsFiles) -> Result<ClientConfig, TlsError> {
    let (own, roots) = files.read_rotated()?;
    let roots = roots.ok_or_else(|| TlsError::new("SPIFFE ids need the CA of the servers"))?;
    spiffe_client_config(own, roots, BTreeSet::new())
}

/// State of a file that changes with its content: inode, size, and time of the change.
type Mark = Option<(u64, u64, i64, i64)>;

fn marks(files: &ClientTlsFiles) -> Vec<Mark> {
    let ClientTlsFiles { certificate, key, client_ca } = files;
    [certificate, key].into_iter().chain(client_ca).map(|path| mark(path)).collect()
}

fn mark(path: &Path) -> Mark {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.ino(), metadata.size(), metadata.mtime(), metadata.mtime_nsec()))
}

/// Detection of changed files.
#[derive(Debug)]
struct Changes {
    /// State of the files at the last successful read.
    read: Vec<Mark>,
    /// Error of the last attempt to read changed files.
    refused: Option<String>,
}

impl Changes {
    /// Reads the files if they have changed, and repeats the read until they can be used.
    fn follow(&mut self, marks: Vec<Mark>, again: impl FnOnce() -> Result<(), String>) {
        if self.read == marks {
            return;
        }
        match again() {
            Ok(()) => {
                tracing::info!("the certificates of the front end for Meridio have changed and were read");
                (self.read, self.refused) = (marks, None);
            }
            // The certificate and its key are replaced one after the other, so a mismatch may be temporary.
            Err(error) => {
                if self.refused.as_ref() != Some(&error) {
                    tracing::warn!(
                        error,
                        "changed certificates of the front end for Meridio can't be used yet"
                    );
                    self.refused = Some(error);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use rcgen::{
        BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType, date_time_ymd,
    };

    use super::*;

    /// Writes a certificate with a SPIFFE id, its key and its own CA.
    fn issue(files: &ClientTlsFiles, until_year: i32) {
        let ca_key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = CertifiedIssuer::self_signed(params, ca_key).unwrap();
        let mut params = CertificateParams::default();
        params.subject_alt_names = vec![SanType::URI("spiffe://example.org/ipam".try_into().unwrap())];
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(until_year, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &ca).unwrap();
        std::fs::write(&files.certificate, certificate.pem()).unwrap();
        std::fs::write(&files.key, key.serialize_pem()).unwrap();
        std::fs::write(files.client_ca.as_ref().unwrap(), ca.pem()).unwrap();
    }

    #[tokio::test]
    async fn replaced_files_are_in_use_without_a_signal() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name| dir.path().join(name);
        let files = ClientTlsFiles {
            certificate: file("svid.pem"),
            key: file("svid_key.pem"),
            client_ca: Some(file("bundle.pem")),
        };
        issue(&files, 2998);
        let certificates = Certificates::load(&files).unwrap();
        let expires_at_s = || certificates.clients().expires_at_s().unwrap();
        let (before, of_client) = (expires_at_s(), certificates.of_client());
        // A certificate that is no longer valid leaves all as it was.
        issue(&files, 2001);
        assert!(certificates.replace(&files).unwrap_err().contains("has expired"));
        assert_eq!(expires_at_s(), before);
        assert!(Arc::ptr_eq(&of_client, &certificates.of_client()));
        let changes = async {
            issue(&files, 2999);
            let begun = tokio::time::Instant::now();
            while expires_at_s() == before {
                assert!(begun.elapsed() < Duration::from_secs(30), "the files are not in use");
                tokio::task::yield_now().await;
            }
            // From then on the files of the new configuration are followed.
            let others = tempfile::tempdir().unwrap();
            let other = |name| others.path().join(name);
            let files = ClientTlsFiles {
                certificate: other("svid.pem"),
                key: other("svid_key.pem"),
                client_ca: Some(other("bundle.pem")),
            };
            issue(&files, 2998);
            certificates.replace(&files).unwrap();
            issue(&files, 2997);
            while expires_at_s() >= before {
                assert!(begun.elapsed() < Duration::from_secs(30), "the other files are not in use");
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            () = certificates.clone().follow_every(Duration::from_millis(5)) => panic!("it follows for ever"),
            () = changes => {}
        }
        assert!(!Arc::ptr_eq(&of_client, &certificates.of_client()));
    }

    #[test]
    fn files_are_read_again_after_each_change_until_they_can_be_used() {
        let dir = tempfile::tempdir().unwrap();
        let paths = ["a", "b"].map(|name| dir.path().join(name));
        let reads = Cell::new(0);
        let look = || paths.iter().map(|path| mark(path)).collect::<Vec<_>>();
        let mut changes = Changes { read: look(), refused: None };
        let mut read_as = |result: Result<(), String>| {
            let before = reads.get();
            changes.follow(look(), || {
                reads.set(reads.get() + 1);
                result
            });
            reads.get() - before
        };
        assert_eq!(read_as(Ok(())), 0, "they were read at the start");
        std::fs::write(&paths[0], "1").unwrap();
        assert_eq!(read_as(Err("the key is missing".to_owned())), 1);
        assert_eq!(read_as(Err("the key is missing".to_owned())), 1, "it was not usable");
        std::fs::write(&paths[1], "1").unwrap();
        assert_eq!((read_as(Ok(())), read_as(Ok(()))), (1, 0));
        // A file with the same size and time is moved into place, as Kubernetes does with secrets.
        let (at, other) = (std::fs::metadata(&paths[0]).unwrap().modified().unwrap(), dir.path().join("c"));
        std::fs::write(&other, "2").unwrap();
        std::fs::File::options().write(true).open(&other).unwrap().set_modified(at).unwrap();
        std::fs::rename(&other, &paths[0]).unwrap();
        assert_eq!((read_as(Ok(())), read_as(Ok(()))), (1, 0));
        std::fs::remove_file(&paths[0]).unwrap();
        assert_eq!(read_as(Err("a can't be read".to_owned())), 1);
    }
}
