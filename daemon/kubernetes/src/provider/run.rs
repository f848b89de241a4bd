//! Run of a provider.

use tokio::sync::watch::Sender;

use super::claims::serve_claims;
use super::compare::{compare, compare_claims};
use super::pools::serve_pools;
use super::settings::ProviderSettings;
use super::shared::Shared;
use super::status::ProviderStatus;
use super::streams::stream;
use super::waiting::follow_waiting;
use crate::backoff::Backoff;
use crate::connection::Connection;
use crate::servers::Servers;

/// Serves the claims of a management cluster until the future is dropped. Recovers from failures itself, and
/// publishes its status.
pub async fn provide(settings: ProviderSettings, servers: impl Servers, status: Sender<ProviderStatus>) {
    let mut backoff = Backoff::default();
    status.send_replace(ProviderStatus::new());
    loop {
        if let Err(error) = run(&settings, servers.clone(), &status).await {
            status.send_modify(|status| status.error = Some(error));
        }
        backoff.wait().await;
    }
}

/// Runs all tasks. Ends if the credentials can't be used.
async fn run(
    settings: &ProviderSettings,
    servers: impl Servers,
    status: &Sender<ProviderStatus>,
) -> Result<(), String> {
    let connection = Connection::open(settings.kubeconfig.as_deref(), settings.context.as_deref()).await?;
    let client = connection.client(None)?;
    let shared = &Shared::new(settings.clone(), servers, client, status.clone());
    let serve = async {
        shared.synced().await;
        let has_failed = !compare(shared).await;
        tokio::join!(
            serve_pools(shared),
            serve_claims(shared),
            follow_waiting(shared),
            compare_claims(shared, has_failed),
        );
    };
    tokio::select! {
        result = stream(shared, &connection) => result,
        () = serve => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::Remote;

    #[test]
    fn a_provider_can_run_on_any_thread() {
        fn check<T: Send>(_: impl FnOnce(ProviderSettings, Remote, Sender<ProviderStatus>) -> T) {}
        check(provide);
    }
}
