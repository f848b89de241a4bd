//! Settings that SIGHUP reloads while the member runs.
//!
//! **Invariant:** each one is replaced as a whole or not at all. If it can't be read or used, the error is
//! logged and the old one stays.

use std::time::Duration;

use ipam_api::tls::expires_within;
use tokio::signal::unix::Signal;
use tracing_subscriber::{EnvFilter, Registry, reload};

use crate::access::Access;
use crate::config::{Config, Flags};
use crate::http::connection::tls::ClientTls;
use ipam_raft::node::PeerTls;

/// Reads one thing again, and says why it couldn't.
type Again = Box<dyn Fn(&Config) -> Result<(), String> + Send + Sync>;

/// Things that are read again.
#[derive(Default)]
pub struct Reloads(Vec<(&'static str, Again)>);

impl Reloads {
    /// Reads `what` again by `again`, which gets the configuration as it is then.
    pub fn add(
        &mut self,
        what: &'static str,
        again: impl Fn(&Config) -> Result<(), String> + Send + Sync + 'static,
    ) {
        self.0.push((what, Box::new(again)));
    }

    /// Reads everything again whenever the signal comes, until it is dropped. The configuration is read as it
    /// was at the start: file, environment, flags.
    pub async fn run(self, mut signal: Signal, flags: Flags) {
        while signal.recv().await.is_some() {
            match Config::load(&flags) {
                Ok(config) => self.again(&config),
                Err(error) => {
                    tracing::error!(%error, "reload: the configuration is refused; everything stays as it was")
                }
            }
        }
    }

    fn again(&self, config: &Config) {
        for (what, again) in &self.0 {
            match again(config) {
                Ok(()) => tracing::info!(what, "reload: read again"),
                Err(error) => tracing::error!(what, error, "reload: refused; the old one stays"),
            }
        }
    }
}

/// The certificate that clients are shown, and the CAs of theirs.
pub fn client_tls(tls: Option<ClientTls>) -> impl Fn(&Config) -> Result<(), String> {
    move |config| match (&tls, &config.tls) {
        (None, None) => Ok(()),
        (Some(tls), Some(files)) => {
            let (own, client_roots) = files.read().map_err(|error| error.to_string())?;
            if own.chain.first().is_some_and(|certificate| expires_within(certificate, Duration::ZERO)) {
                return Err(format!("{} has expired", files.certificate.display()));
            }
            tls.replace(own, client_roots).map_err(|error| error.to_string())
        }
        _ => Err("[tls] begins and ends with a restart only".to_owned()),
    }
}

/// The certificate that other members are shown, and their CA.
pub fn peer_tls(tls: Option<PeerTls>) -> impl Fn(&Config) -> Result<(), String> {
    move |config| match (&tls, &config.peer_tls) {
        (None, None) => Ok(()),
        (Some(tls), Some(files)) => {
            let credentials = files.read().map_err(|error| error.to_string())?;
            tls.replace(credentials).map_err(|error| error.to_string())
        }
        _ => Err("[peer_tls] begins and ends with a restart only".to_owned()),
    }
}

/// Reloads the access rules and the tokens file.
pub fn access(access: Access) -> impl Fn(&Config) -> Result<(), String> {
    move |config| access.replace(config.access.clone()).map_err(|error| error.to_string())
}

/// Reloads the log filter.
pub fn log_filter(handle: reload::Handle<EnvFilter, Registry>) -> impl Fn(&Config) -> Result<(), String> {
    move |config| {
        let filter = config.log_filter().map_err(|error| error.to_string())?;
        handle.reload(filter).map_err(|error| error.to_string())
    }
}
