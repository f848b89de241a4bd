//! Confirmation of a change: a server answers over a new connection.

use std::time::Duration;

use ipam_api::client::Call;
use tokio::time::{Instant, sleep};

use crate::cluster::{Cluster, is_answer};
use crate::config::Config;

/// Request that each member answers without a token.
const PATH: &str = "/readyz";
/// Time limit of one attempt.
const ATTEMPT: Duration = Duration::from_secs(2);
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// Waits until a server answers, at most for `within`. A connection that was open before proves nothing.
pub(super) async fn answers(config: &Config, within: Duration) -> bool {
    let end = Instant::now() + within;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        if let Ok(cluster) = Cluster::new(&config.servers, config.ca_file.as_deref(), None) {
            let call = Call::get(PATH).within(left.min(ATTEMPT));
            // The limit of the client counts from its first attempt to connect.
            let sent = tokio::time::timeout(left.min(ATTEMPT), cluster.send(call)).await;
            if sent.is_ok_and(|result| result.as_ref().map_or_else(is_answer, |_| true)) {
                return true;
            }
        }
        sleep(PAUSE.min(left)).await;
    }
}
