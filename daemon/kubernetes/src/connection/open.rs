//! Addresses and credentials of a cluster, and the clients for it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ipam_api::resolve::Names;
use kube::client::{ClientBuilder, ConfigExt as _};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use super::signal::Signal;
use super::transport::Transport;

const CONNECT: Duration = Duration::from_secs(5);
/// Interval of TCP keep-alive probes. They detect the failure of a server while a watch is idle.
const KEEPALIVE: Duration = Duration::from_secs(20);

/// Cluster with its credentials.
#[derive(Clone)]
pub(crate) struct Connection {
    config: Config,
    http: reqwest::Client,
}

impl Connection {
    /// Reads the credentials, without a request.
    ///
    /// # Errors
    /// The setting, file or certificate that is unusable.
    pub(crate) async fn open(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<Self, String> {
        let config = match kubeconfig {
            Some(file) => {
                let options = KubeConfigOptions { context: context.map(str::to_owned), ..Default::default() };
                let wrong = |why: &dyn std::fmt::Display| format!("{}: {why}", file.display());
                let read = Kubeconfig::read_from(file).map_err(|error| wrong(&error))?;
                Config::from_custom_kubeconfig(read, &options).await.map_err(|error| wrong(&error))?
            }
            None => Config::incluster().map_err(|error| {
                format!("no kubeconfig is named, and this is no pod with a service account: {error}")
            })?,
        };
        if config.tls_server_name.is_some() {
            return Err("tls-server-name of a kubeconfig is not supported".to_owned());
        }
        // kube uses the process-wide crypto provider. A second installation has no effect.
        let _ = ipam_api::tls::provider().as_ref().clone().install_default();
        let tls = config.rustls_client_config().map_err(|error| error.to_string())?;
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .dns_resolver(Arc::new(Names))
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .tcp_nodelay(true)
            .tcp_keepalive(KEEPALIVE)
            .connect_timeout(CONNECT);
        if let Some(proxy) = &config.proxy_url {
            builder =
                builder.proxy(reqwest::Proxy::all(proxy.to_string()).map_err(|error| error.to_string())?);
        }
        Ok(Self { http: builder.build().map_err(|error| error.to_string())?, config })
    }

    /// Client of the cluster. Its watches record their signs of life in `signal`.
    ///
    /// # Errors
    /// Unusable credentials.
    pub(crate) fn client(&self, signal: Option<Arc<Signal>>) -> Result<Client, String> {
        let transport = Transport { http: self.http.clone(), signal };
        let builder = ClientBuilder::new(transport, "default");
        let base = self.config.base_uri_layer();
        let client = match self.config.auth_layer().map_err(|error| error.to_string())? {
            Some(credentials) => builder.with_layer(&credentials).with_layer(&base).build(),
            None => builder.with_layer(&base).build(),
        };
        Ok(client)
    }
}
