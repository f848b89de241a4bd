//! Application of custom resources to the servers.

use kube::Client;
use tokio::time::Instant;

use super::reconcile::{Phase, Reconciler};
use crate::backoff::Backoff;
use crate::custom::{HostPolicies, Pools, Reservations, Subnets};
use crate::servers::Servers;
use crate::shared::Shared;

/// Applies the custom resources, for as long as the watcher runs.
///
/// A pool is written after its subnet, and deleted before it.
pub(crate) async fn apply_custom(shared: &Shared<impl Servers>, client: &Client) {
    let mut subnets = Reconciler::<_, Subnets>::new(shared, client);
    let mut pools = Reconciler::<_, Pools>::new(shared, client);
    let mut reservations = Reconciler::<_, Reservations>::new(shared, client);
    let mut policies = Reconciler::<_, HostPolicies>::new(shared, client);
    let mut backoff = Backoff::default();
    loop {
        let collected = [
            subnets.collect().await,
            pools.collect().await,
            reservations.collect().await,
            policies.collect().await,
        ];
        let written = [
            policies.write(Phase::Delete).await,
            reservations.write(Phase::Delete).await,
            pools.write(Phase::Delete).await,
            subnets.write(Phase::Delete).await,
            subnets.write(Phase::Put).await,
            pools.write(Phase::Put).await,
            reservations.write(Phase::Put).await,
            policies.write(Phase::Put).await,
        ];
        subnets.publish().await;
        pools.publish().await;
        reservations.publish().await;
        policies.publish().await;
        let mut has_changed = false;
        let mut failure = collected.into_iter().find_map(Result::err);
        for result in written {
            match result {
                Ok(is_written) => has_changed |= is_written,
                Err(problem) => failure = Some(problem),
            }
        }
        if has_changed {
            // A refused resource may depend on a resource that was written in this round.
            subnets.retry();
            pools.retry();
            reservations.retry();
            policies.retry();
        }
        if let Some(problem) = failure {
            shared.refused(&problem);
            backoff.wait().await;
            continue;
        }
        backoff.reset();
        if !has_changed {
            let next = [subnets.next(), pools.next(), reservations.next(), policies.next()];
            let next = next.into_iter().flatten().min();
            tokio::select! {
                () = shared.wake.custom.notified() => {}
                () = tokio::time::sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {}
            }
        }
    }
}
