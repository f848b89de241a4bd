//! Credentials and trusted CAs of a client.

use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use reqwest::header::HeaderValue;

use crate::limits::TOKEN_BYTES_MAX;
use crate::{Code, Problem};

/// Credentials and trusted CAs of a client. Secrets are named by their files.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// File with the CAs (PEM) that verify `https://` servers; the system's CAs by default.
    pub ca_file: Option<PathBuf>,
    /// File with the client certificate (PEM) for `https://` servers.
    pub certificate_file: Option<PathBuf>,
    /// File with the client certificate's key (PEM).
    pub key_file: Option<PathBuf>,
    /// File with the token that is sent with every request.
    pub token_file: Option<PathBuf>,
}

/// Token as it is sent. Its debug output contains no secret.
#[derive(Clone)]
pub(super) struct Token(pub(super) HeaderValue);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl Options {
    /// Reads the token.
    pub(super) fn token(&self) -> Result<Option<Token>, Problem> {
        self.token_file.as_deref().map(read_token).transpose()
    }

    /// Rejects options that need TLS, in a program without TLS.
    #[cfg(not(feature = "tls"))]
    pub(super) fn check(&self) -> Result<(), Problem> {
        match (&self.ca_file, &self.certificate_file, &self.key_file) {
            (None, None, None) => Ok(()),
            _ => Err(Problem::new(
                Code::InvalidField,
                "certificates are of no use: this program has no TLS in it",
            )),
        }
    }

    /// Configuration of rustls. `verifies` is true if the client verifies the server's certificate.
    #[cfg(feature = "tls")]
    pub(super) fn tls(&self, verifies: bool) -> Result<rustls::ClientConfig, Problem> {
        use crate::tls::{Credentials, VERSIONS, provider, read_roots};

        let unusable = |why: &dyn fmt::Display| Problem::new(Code::InvalidField, why.to_string());
        let roots = match &self.ca_file {
            Some(file) => read_roots(file).map_err(|error| unusable(&error))?,
            None if verifies => system_roots(),
            None => rustls::RootCertStore::empty(),
        };
        let config = rustls::ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(VERSIONS)
            .map_err(|error| unusable(&error))?
            .with_root_certificates(roots);
        match (&self.certificate_file, &self.key_file) {
            (None, None) => Ok(config.with_no_client_auth()),
            (Some(certificate), Some(key)) => {
                let Credentials { chain, key } =
                    Credentials::read(certificate, key).map_err(|error| unusable(&error))?;
                config.with_client_auth_cert(chain, key).map_err(|error| {
                    unusable(&format!("{} can't be used with its key: {error}", certificate.display()))
                })
            }
            _ => Err(unusable(&"a certificate and its key are only good together").help("Name both files.")),
        }
    }
}

/// Root CAs of the system; certificates that can't be parsed are skipped.
#[cfg(feature = "tls")]
fn system_roots() -> rustls::RootCertStore {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

fn read_token(file: &Path) -> Result<Token, Problem> {
    let wrong = |why: &dyn fmt::Display| {
        Problem::new(Code::InvalidField, format!("the token in {}: {why}", file.display()))
            .help("The file has the token and nothing else, on one line.")
    };
    let mut text = String::new();
    let opened = std::fs::File::open(file).map_err(|error| wrong(&error))?;
    opened.take(TOKEN_BYTES_MAX + 1).read_to_string(&mut text).map_err(|error| wrong(&error))?;
    let token = text.trim();
    if token.is_empty()
        || text.len() as u64 > TOKEN_BYTES_MAX
        || !token.bytes().all(|byte| byte.is_ascii_graphic())
    {
        return Err(wrong(&"it isn't one"));
    }
    let mut value =
        HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| wrong(&"it can't be sent"))?;
    value.set_sensitive(true);
    Ok(Token(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_word_and_is_never_shown() {
        let dir = std::env::temp_dir().join(format!("ipam-api-token-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join("token");
        let read = |text: &[u8]| {
            std::fs::write(&file, text).unwrap();
            read_token(&file)
        };
        let token = read(b"  s3cret.word\n").unwrap();
        assert_eq!(token.0, "Bearer s3cret.word");
        assert!(!format!("{token:?} {:?}", token.0).contains("s3cret"));
        let long = vec![b'x'; usize::try_from(TOKEN_BYTES_MAX).unwrap() + 1];
        for text in [&b""[..], b"\n", b"s3cret two", b"s3cret\nx: y", b"s3cret\0", b"\xff", &long] {
            let problem = read(text).unwrap_err();
            assert!(!problem.to_string().contains("s3cret"), "{problem}");
        }
        std::fs::remove_dir_all(&dir).unwrap();
        assert!(read_token(&file).is_err());
    }
}
