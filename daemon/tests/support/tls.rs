//! Certificates for tests: the good ones as `ipamctl cluster ca` makes them, the bad ones by hand.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use ipam_api::client::Options;
use ipam_api::tls::{Credentials, VERSIONS, provider, read_roots};
use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, Issuer, KeyPair, SanType, date_time_ymd};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::programs;

/// A CA in a directory.
#[derive(Debug, Clone)]
pub(crate) struct Ca {
    dir: PathBuf,
}

/// Files of a certificate's holder.
#[derive(Debug, Clone)]
pub(crate) struct Holder {
    pub(crate) ca: PathBuf,
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Ca {
    pub(crate) fn new(dir: PathBuf) -> Self {
        let ca = Self { dir };
        ca.run(&["init"], &[]);
        ca
    }

    fn run(&self, verb: &[&str], rest: &[&str]) {
        let mut command = Command::new(programs::ipamctl());
        command.env_clear().args(["cluster", "ca"]).args(verb).arg(&self.dir).args(rest);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    pub(crate) fn certificate(&self) -> PathBuf {
        self.dir.join("ca.crt")
    }

    fn holder(&self, stem: &str) -> Holder {
        let file = |ending| self.dir.join(format!("{stem}.{ending}"));
        Holder { ca: self.certificate(), certificate: file("crt"), key: file("key") }
    }

    /// A member's certificate, also when it has one.
    pub(crate) fn member(&self, name: &str, address: &str) -> Holder {
        self.run(&["issue"], &["member", name, "--address", address, "--force"]);
        self.holder(&format!("{name}.member"))
    }

    /// Configuration of a server at an address.
    pub(crate) fn server(&self, address: &str) -> Arc<ServerConfig> {
        let files = self.member("api", address);
        let Credentials { chain, key } = Credentials::read(&files.certificate, &files.key).unwrap();
        let config =
            ServerConfig::builder_with_provider(provider()).with_protocol_versions(VERSIONS).unwrap();
        Arc::new(config.with_no_client_auth().with_single_cert(chain, key).unwrap())
    }

    /// Configuration of a server with this certificate, whose clients need one of the CA.
    pub(crate) fn mutual_server(&self, files: &Holder) -> Arc<ServerConfig> {
        let Credentials { chain, key } = Credentials::read(&files.certificate, &files.key).unwrap();
        let roots = Arc::new(read_roots(&files.ca).unwrap());
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider()).build().unwrap();
        let config =
            ServerConfig::builder_with_provider(provider()).with_protocol_versions(VERSIONS).unwrap();
        let mut config = config.with_client_cert_verifier(verifier).with_single_cert(chain, key).unwrap();
        config.alpn_protocols = vec![b"h2".to_vec()];
        Arc::new(config)
    }

    pub(crate) fn client(&self, name: &str) -> Holder {
        self.run(&["issue"], &["client", name]);
        self.holder(&format!("{name}.client"))
    }

    pub(crate) fn node(&self, realm: &str, name: &str) -> Holder {
        self.run(&["issue"], &["node", &format!("{realm}/{name}")]);
        self.holder(&format!("{name}.{realm}.node"))
    }

    /// Long expired certificate for a name.
    pub(crate) fn expired(&self, dns_name: &str) -> Holder {
        let mut params = CertificateParams::new([dns_name.to_owned()]).unwrap();
        params.not_before = date_time_ymd(2001, 1, 1);
        params.not_after = date_time_ymd(2002, 1, 1);
        self.sign(params, &format!("expired-{dns_name}"))
    }

    /// Certificate with a SPIFFE id, also for an address if there is one.
    pub(crate) fn spiffe(&self, stem: &str, id: &str, address: Option<&str>) -> Holder {
        let mut params = CertificateParams::new(address.map(str::to_owned).as_slice()).unwrap();
        params.subject_alt_names.push(SanType::URI(id.try_into().unwrap()));
        self.sign(params, &format!("{stem}.spiffe"))
    }

    fn sign(&self, mut params: CertificateParams, stem: &str) -> Holder {
        let read = |name| std::fs::read_to_string(self.dir.join(name)).unwrap();
        let ca_key = KeyPair::from_pem(&read("ca.key")).unwrap();
        let issuer = Issuer::from_ca_cert_pem(&read("ca.crt"), ca_key).unwrap();
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        let holder = self.holder(stem);
        std::fs::write(&holder.certificate, certificate.pem()).unwrap();
        std::fs::write(&holder.key, key.serialize_pem()).unwrap();
        holder
    }
}

impl Holder {
    /// As a client of ours shows it.
    pub(crate) fn options(&self) -> Options {
        Options {
            ca_file: Some(self.ca.clone()),
            certificate_file: Some(self.certificate.clone()),
            key_file: Some(self.key.clone()),
            ..Options::default()
        }
    }
}

/// TLS stream to the server `name`, as `holder` if there is one.
pub(crate) async fn connect(
    to: SocketAddr,
    name: &str,
    ca: &Path,
    holder: Option<&Holder>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(VERSIONS)
        .unwrap()
        .with_root_certificates(read_roots(ca).unwrap());
    let config = match holder {
        None => config.with_no_client_auth(),
        Some(holder) => {
            let own = Credentials::read(&holder.certificate, &holder.key).unwrap();
            config.with_client_auth_cert(own.chain, own.key).unwrap()
        }
    };
    let stream = TcpStream::connect(to).await?;
    TlsConnector::from(Arc::new(config)).connect(name.to_owned().try_into().unwrap(), stream).await
}
