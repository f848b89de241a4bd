//! Settings that SIGHUP reloads while the member runs.
//!
//! **Invariant:** each setting is replaced as a whole or not at all. If the new value can't be read or used,
//! the error is logged and the old value stays.

use std::time::Duration;

use ipam_api::tls::expires_within;
use tokio::signal::unix::Signal;
#[cfg(feature = "meridio")]
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::{EnvFilter, Registry, reload};

use crate::access::Access;
use crate::config::{Config, Flags};
use crate::http::connection::tls::ClientTls;
use crate::supervision::Supervision;
use ipam_raft::node::PeerTls;

/// Handle of the filter of the log.
pub type LogHandle = reload::Handle<EnvFilter, Registry>;

/// Function that reloads one setting. An error is the reason why the old value stays.
type Again = Box<dyn Fn(&Config) -> Result<(), String> + Send + Sync>;

/// Settings that a signal reloads.
#[derive(Default)]
pub struct Reloads(Vec<(&'static str, Again)>);

impl Reloads {
    /// Adds the setting `what`, which `again` reloads from the configuration at the time of the signal.
    pub fn add(
        &mut self,
        what: &'static str,
        again: impl Fn(&Config) -> Result<(), String> + Send + Sync + 'static,
    ) {
        self.0.push((what, Box::new(again)));
    }

    /// Reloads everything at each signal, until the future is dropped. The sources are the same as at the
    /// start: file, environment and flags.
    pub async fn run(self, mut signal: Signal, flags: Flags, supervision: Supervision) {
        while signal.recv().await.is_some() {
            supervision.reloading().await;
            match Config::load(&flags) {
                Ok(config) => self.again(&config),
                Err(error) => {
                    tracing::error!(%error, "reload: the configuration is refused; everything stays as it was")
                }
            }
            supervision.reloaded().await;
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

/// Reloads the certificate for clients, and the CAs of client certificates.
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

/// Reloads the certificate for other members, and their CA.
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
pub fn log_filter(handle: LogHandle) -> impl Fn(&Config) -> Result<(), String> {
    move |config| {
        let filter = config.log_filter().map_err(|error| error.to_string())?;
        handle.reload(filter).map_err(|error| error.to_string())
    }
}

/// Log filter after SIGUSR1.
#[cfg(feature = "meridio")]
const RAISED: &str = "debug";

/// Signals by which the level of Meridio's programs is changed: SIGUSR1 raises it, SIGUSR2 restores it.
#[cfg(feature = "meridio")]
#[derive(Debug)]
pub struct LevelSignals {
    raise: Signal,
    restore: Signal,
}

#[cfg(feature = "meridio")]
impl LevelSignals {
    /// Receives the signals from now on. An unhandled signal would end the process.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn new() -> std::io::Result<Self> {
        let raise = signal(SignalKind::user_defined1())?;
        Ok(Self { raise, restore: signal(SignalKind::user_defined2())? })
    }

    /// Follows the signals until the future is dropped. Each one reads the configuration again, like SIGHUP.
    pub async fn follow(mut self, handle: LogHandle, flags: Flags) {
        let set = log_filter(handle);
        loop {
            let raised = tokio::select! {
                Some(()) = self.raise.recv() => true,
                Some(()) = self.restore.recv() => false,
                else => return,
            };
            let config = Config::load(&flags).map_err(|error| error.to_string());
            let log =
                |config: Config| if raised { Config { log: RAISED.to_owned(), ..config } } else { config };
            match config.map(log).and_then(|config| set(&config).map(|()| config.log)) {
                Ok(log) => tracing::info!(log, "a signal has set the level of the log"),
                Err(error) => tracing::error!(error, "a signal can't set the level of the log"),
            }
        }
    }
}

#[cfg(feature = "meridio")]
#[cfg(test)]
mod tests {
    use rustix::process::{Signal as Number, getpid, kill_process};

    use super::*;

    #[tokio::test]
    async fn signals_raise_and_restore_the_level_of_the_log() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("ipamd.toml");
        std::fs::write(&file, "name = \"a\"\nlog = \"warn\"\n").unwrap();
        let flags = Flags::of_file(&file);
        // The handle works only while the layer lives.
        let (_layer, handle) = reload::Layer::new(Config::load(&flags).unwrap().log_filter().unwrap());
        let level = || handle.with_current(|filter: &EnvFilter| filter.max_level_hint()).unwrap();
        let before = level();
        let signals = LevelSignals::new().unwrap();
        let follow = signals.follow(handle.clone(), flags);
        let changes = async {
            let until = async |is_reached: &dyn Fn() -> bool| {
                let begun = std::time::Instant::now();
                while !is_reached() {
                    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", level());
                    tokio::task::yield_now().await;
                }
            };
            kill_process(getpid(), Number::USR1).unwrap();
            until(&|| level() > before).await;
            kill_process(getpid(), Number::USR2).unwrap();
            until(&|| level() == before).await;
        };
        tokio::select! {
            () = follow => panic!("signals end"),
            () = changes => {}
        }
    }
}
