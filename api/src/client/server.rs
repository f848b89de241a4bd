//! Server of a client: its address, and the HTTP client with its connections.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::Url;

use crate::limits::{CONNECT_MS_MAX, IDLE_MS_MAX};
use crate::name::shown;
use crate::{Code, Problem};

/// Address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// `http://host:port` or `https://host:port`.
    Network(Url),
    /// `unix:/path`.
    Socket(PathBuf),
}

/// Returns the host of a server's address if it is a name, which the client has to resolve.
#[must_use]
pub fn unresolved_host(server: &str) -> Option<String> {
    let url: Url = server.trim().parse().ok()?;
    url.domain().map(str::to_owned)
}

/// Server with its HTTP client.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) place: Place,
    /// Base URL to which paths are joined.
    pub(super) base: Url,
    pub(super) http: reqwest::Client,
    /// Network of a simulation, in place of sockets.
    #[cfg(feature = "simulation")]
    pub(super) network: Option<std::sync::Arc<dyn super::Network>>,
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Network(url) => f.write_str(url.as_str().trim_end_matches('/')),
            Place::Socket(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Place {
    /// Reads a server's address.
    ///
    /// # Errors
    /// `invalid-field`.
    pub(super) fn parse(text: &str) -> Result<Self, Problem> {
        let wrong = || {
            // The text before an `@` may contain a password.
            let named =
                text.rsplit_once('@').map_or_else(|| shown(text), |(_, host)| format!("…@{}", shown(host)));
            Problem::new(Code::InvalidField, format!("{named} is not a server address")).help(
                "Write it as http://host:port, for example http://127.0.0.1:7440, as https://host:port, or as \
                 unix:/path/of/its/socket.",
            )
        };
        let text = text.trim();
        if let Some(path) = text.strip_prefix("unix:") {
            let path = Path::new(path.strip_prefix("//").unwrap_or(path));
            return if path.is_absolute() { Ok(Self::Socket(path.to_owned())) } else { Err(wrong()) };
        }
        let url: Url = text.parse().map_err(|_| wrong())?;
        let plain = url.host_str().is_some()
            && url.path() == "/"
            && url.query().is_none()
            && url.username().is_empty()
            && url.password().is_none();
        match url.scheme() {
            "http" if plain => Ok(Self::Network(url)),
            "https" if plain && cfg!(feature = "tls") => Ok(Self::Network(url)),
            "https" if plain => Err(Problem::new(
                Code::InvalidField,
                format!("{} can't be asked: this program has no TLS in it", shown(text)),
            )
            .help("Name the node's agent, or a server at http:// on a network that you trust.")),
            _ => Err(wrong()),
        }
    }

    /// True if the server uses TLS.
    #[cfg(feature = "tls")]
    pub(super) fn has_tls(&self) -> bool {
        matches!(self, Self::Network(url) if url.scheme() == "https")
    }
}

/// Common settings of all connections.
pub(super) fn builder() -> reqwest::ClientBuilder {
    let builder = reqwest::Client::builder();
    #[cfg(feature = "names")]
    let builder = builder.dns_resolver(std::sync::Arc::new(crate::resolve::Names));
    builder
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .tcp_nodelay(true)
        .pool_idle_timeout(Duration::from_millis(IDLE_MS_MAX))
        .connect_timeout(Duration::from_millis(CONNECT_MS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_are_told_from_addresses() {
        for (server, name) in [
            ("http://n1:7440", Some("n1")),
            (" https://N1.ipam.example ", Some("n1.ipam.example")),
            ("http:n1", Some("n1")),
            ("http://user@localhost:1", Some("localhost")),
            ("http://127.0.0.1:7440", None),
            ("http://[::1]:7440", None),
            ("http://127.1", None),
            ("unix:/run/x.sock", None),
            ("n1", None),
        ] {
            assert_eq!(unresolved_host(server).as_deref(), name, "{server}");
        }
    }

    #[test]
    fn addresses_are_read_strictly() {
        let socket = Place::parse("unix:/run/x.sock").unwrap();
        assert_eq!(socket, Place::Socket("/run/x.sock".into()));
        assert_eq!(Place::parse(" unix:///run/x.sock ").unwrap(), socket);
        assert!(Place::parse("http://127.0.0.1:7440/").is_ok());
        assert_eq!(Place::parse("https://n1.example:7440").is_ok(), cfg!(feature = "tls"));
        for text in [
            "",
            "unix:",
            "unix:x.sock",
            "n1:7440",
            "ftp://n1",
            "http://n1/v1",
            "http://n1/?x",
            "http://user:secret@n1",
            "http://user@n1",
        ] {
            let problem = Place::parse(text).unwrap_err();
            assert_eq!(problem.code, Code::InvalidField, "{text}");
        }
    }
}
