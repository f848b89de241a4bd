//! Claims of the management cluster: the next step of each, many at once.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use ipam_api::limits::CLUSTER_API_CLAIMS_AT_ONCE;
use tokio::time::Instant;

use super::claim_step::{Outcome, take_step};
use super::pauses::Pauses;
use super::shared::Shared;
use crate::cluster_api::Key;
use crate::servers::Servers;

/// Time after which a waiting claim is requested again, unless an event triggers that earlier.
const WAITING_PAUSE: Duration = Duration::from_secs(60);

/// Takes the steps of all claims, for as long as the provider runs.
pub(super) async fn serve_claims(shared: &Shared<impl Servers>) {
    shared.synced().await;
    let mut steps = FuturesUnordered::new();
    let mut busy: BTreeSet<Key> = BTreeSet::new();
    let mut pauses = Pauses::default();
    loop {
        while let Some(key) = pauses.end(Instant::now()) {
            shared.views().retry(key);
        }
        while steps.len() < CLUSTER_API_CLAIMS_AT_ONCE {
            // Only one step of a claim runs at a time.
            let Some(key) = shared.views().due_claims.take(&busy) else { break };
            busy.insert(key.clone());
            steps.push(async move {
                let outcome = take_step(shared, &key).await;
                (key, outcome)
            });
        }
        let pause = pauses.next();
        tokio::select! {
            Some((key, outcome)) = steps.next() => {
                busy.remove(&key);
                match outcome {
                    Outcome::Idle => pauses.succeed(&key),
                    Outcome::Granted => {}
                    Outcome::Waits => pauses.wait(key, Instant::now(), WAITING_PAUSE),
                    Outcome::Failed => pauses.fail(key, Instant::now()),
                    Outcome::Gone => pauses.forget(&key),
                }
                shared.publish();
            }
            () = shared.claims.notified() => {}
            () = tokio::time::sleep_until(pause.unwrap_or_else(Instant::now)), if pause.is_some() => {}
        }
    }
}
