//! Watch of the conduits, from which each list is applied.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use tokio::sync::watch;
use tokio::time::sleep;
use tonic::Status;

use super::apply::set_conduits;
use super::connect::{Tls, connect};
use crate::servers::{Caller, Servers};
use crate::settings::{NspSettings, Settings};
use crate::wire::nsp::v1::configuration_manager_client::ConfigurationManagerClient;
use crate::wire::nsp::v1::{Conduit, Trench};

/// First pause before another attempt, as in Meridio's server.
const PAUSE: Duration = Duration::from_millis(500);

/// News of the watch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Followed {
    /// Lists that were applied.
    pub applied: u64,
    /// Failed attempts to watch, and to apply a list.
    pub failures: u64,
    /// Newest failure.
    pub error: Option<String>,
}

/// Applies each list of conduits that the NSP service sends, until it is dropped.
///
/// Each list is complete and is compared with the state, so conduits that ended while no member ran end with
/// the first list.
pub async fn follow_conduits(
    settings: Arc<Settings>,
    nsp: NspSettings,
    tls: Tls,
    servers: impl Servers,
    caller: Caller,
    news: watch::Sender<Followed>,
) {
    let (lists, newest) = watch::channel(None);
    tokio::join!(
        watch_lists(&settings.trench, &nsp, &tls, &lists, &news),
        apply_lists(&settings, nsp.backoff_max, &servers, &caller, newest, &news)
    );
}

/// Keeps the newest list.
async fn watch_lists(
    trench: &str,
    nsp: &NspSettings,
    tls: &Tls,
    lists: &watch::Sender<Option<Vec<String>>>,
    news: &watch::Sender<Followed>,
) {
    let mut pause = PAUSE;
    loop {
        let heard = lists.subscribe();
        let ended = watch_once(trench, nsp, tls, lists).await;
        // A watch that brought a list was a good one; the next attempt comes soon.
        let had_list = heard.has_changed().unwrap_or_default();
        pause = if had_list { PAUSE } else { (pause * 2).min(nsp.backoff_max.max(PAUSE)) };
        if let Err(error) = ended {
            note(news, &error);
        }
        sleep(pause).await;
    }
}

/// Watches over one connection until it ends.
async fn watch_once(
    trench: &str,
    nsp: &NspSettings,
    tls: &Tls,
    lists: &watch::Sender<Option<Vec<String>>>,
) -> Result<(), String> {
    let refused = |status: Status| format!("{:?}: {}", status.code(), status.message());
    let (connection, origin) = connect(nsp, tls()).await?;
    let mut client = ConfigurationManagerClient::with_origin(connection, origin);
    let all = Conduit { name: String::new(), trench: Some(Trench { name: trench.to_owned() }) };
    let mut answers = client.watch_conduit(all).await.map_err(refused)?.into_inner();
    while let Some(answer) = answers.next().await.transpose().map_err(refused)? {
        // The service was asked for one trench; a conduit that names none is of that one.
        let of_trench = |conduit: &Conduit| conduit.trench.as_ref().is_none_or(|own| own.name == trench);
        lists.send_replace(Some(names(answer.conduits.into_iter().filter(of_trench))));
    }
    Ok(())
}

/// Names in the order of the list, each once.
fn names(conduits: impl Iterator<Item = Conduit>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    conduits.map(|conduit| conduit.name).filter(|name| seen.insert(name.clone())).collect()
}

/// Applies the newest list, and repeats it until it succeeds or a newer one comes.
async fn apply_lists(
    settings: &Settings,
    backoff_max: Duration,
    servers: &impl Servers,
    caller: &Caller,
    mut newest: watch::Receiver<Option<Vec<String>>>,
    news: &watch::Sender<Followed>,
) {
    let mut pause = PAUSE;
    while newest.changed().await.is_ok() {
        loop {
            let Some(names) = newest.borrow_and_update().clone() else { break };
            match set_conduits(settings, servers, caller, &names).await {
                Ok(()) => {
                    pause = PAUSE;
                    news.send_modify(|news| {
                        news.applied += 1;
                        news.error = None;
                    });
                    break;
                }
                Err(problem) => {
                    note(news, &format!("{}: {}", problem.code, problem.detail));
                    sleep(pause).await;
                    pause = (pause * 2).min(backoff_max.max(PAUSE));
                }
            }
        }
    }
}

fn note(news: &watch::Sender<Followed>, error: &str) {
    news.send_modify(|news| {
        news.failures += 1;
        if news.error.as_deref() != Some(error) {
            tracing::warn!(error, "the conduits of the NSP service can't be followed");
            news.error = Some(error.to_owned());
        }
    });
}
