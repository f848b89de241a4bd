//! Address of an API server, and the files with the credentials for it.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use ipam_api::name::shown;
use reqwest::Url;

/// Directory of a service account's files in a container.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Environment variables by which the kubelet names the API server.
const SERVICE: [&str; 2] = ["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"];

/// Address and credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// URL of the API server.
    pub server: String,
    /// File with the token, read for each request: the kubelet replaces it every hour. None: no token.
    pub token_file: Option<PathBuf>,
    /// File with the CA certificates of the server. None: plain HTTP on loopback.
    pub ca_file: Option<PathBuf>,
}

impl Access {
    /// Creates the access from these settings; the defaults are those that the kubelet provides to a
    /// container.
    ///
    /// # Errors
    /// The setting that is missing or wrong.
    pub fn new(
        server: Option<String>,
        token_file: Option<PathBuf>,
        ca_file: Option<PathBuf>,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let own = |name: &str| Path::new(SERVICE_ACCOUNT).join(name);
        let is_in_cluster = server.is_none();
        let server = match server {
            Some(server) => server,
            None => in_cluster(environment)?,
        };
        let wrong = |why: &str| Err(format!("kubernetes.server: {} {why}", shown(&server)));
        let Ok(url) = server.parse::<Url>() else { return wrong("is no URL, such as https://10.96.0.1:443") };
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
            return wrong("must have neither a user nor a query; name a token_file");
        }
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let is_loopback =
            host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        match url.scheme() {
            "https" => {
                let ca_file = ca_file.unwrap_or_else(|| own("ca.crt"));
                let token_file = token_file.or_else(|| is_in_cluster.then(|| own("token")));
                Ok(Self { server, token_file, ca_file: Some(ca_file) })
            }
            // Without TLS, the token could be read on the network.
            "http" if is_loopback => Ok(Self { server, token_file, ca_file: None }),
            "http" => wrong("is without TLS beyond loopback; use https://"),
            _ => wrong("must begin with https://"),
        }
    }
}

fn in_cluster(environment: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let [host, port] = SERVICE.map(|name| environment(name).filter(|value| !value.is_empty()));
    let Some(host) = host else {
        return Err(format!(
            "kubernetes.server is missing, and so is {} of the environment; name the API server, or run the \
             agent in a pod",
            SERVICE[0]
        ));
    };
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    Ok(format!("https://{host}:{}", port.as_deref().unwrap_or("443")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(server: Option<&str>, host: Option<&str>) -> Result<Access, String> {
        let environment = |name: &str| match name {
            "KUBERNETES_SERVICE_HOST" => host.map(str::to_owned),
            _ => host.map(|_| "6443".to_owned()),
        };
        Access::new(server.map(str::to_owned), None, None, environment)
    }

    #[test]
    fn a_container_needs_no_settings() {
        let found = access(None, Some("10.96.0.1")).unwrap();
        assert_eq!(found.server, "https://10.96.0.1:6443");
        assert_eq!(found.token_file.unwrap(), Path::new(SERVICE_ACCOUNT).join("token"));
        assert_eq!(found.ca_file.unwrap(), Path::new(SERVICE_ACCOUNT).join("ca.crt"));
        assert_eq!(access(None, Some("fd00::1")).unwrap().server, "https://[fd00::1]:6443");
        assert!(access(None, None).unwrap_err().contains("KUBERNETES_SERVICE_HOST"));
    }

    #[test]
    fn a_token_crosses_no_network_without_tls() {
        for (server, is_fine) in [
            ("https://api.example:6443", true),
            ("http://127.0.0.1:8001", true),
            ("http://[::1]:8001", true),
            ("http://localhost:8001", true),
            ("http://10.96.0.1", false),
            ("http://localhost.example", false),
            ("ftp://127.0.0.1", false),
            ("https://user:secret@api.example", false),
            ("api.example", false),
        ] {
            assert_eq!(access(Some(server), None).is_ok(), is_fine, "{server}");
        }
    }
}
