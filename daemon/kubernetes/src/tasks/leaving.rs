//! Reclaims the addresses of deleted nodes.

use std::time::Duration;

use ipam_api::client::Call;
use ipam_api::limits::{PROBER_SILENCE_MS_MAX, RECLAIM_LINES_MAX};
use ipam_api::name::ObjectName;
use ipam_api::node_report::NodeAttachment;
use ipam_api::reclaim::{ReclaimReason, ReclaimRequest, Reclaimed};
use ipam_api::{Code, Problem};
use kube::Client;

use crate::backoff::Backoff;
use crate::connection::{Presence, read};
use crate::objects::resource;
use crate::servers::{Servers, each, is_passing, path};
use crate::shared::Shared;

/// Result of one attempt.
enum Attempt {
    /// The node has no attachments any more, or has returned.
    Done,
    /// The agent of the node was heard lately.
    Heard,
    /// The API server or the servers gave no answer.
    Failed,
}

/// Reclaims the addresses of deleted nodes, for as long as the watcher runs.
pub(crate) async fn reclaim_nodes(shared: &Shared<impl Servers>, client: &Client) {
    shared.synced().await;
    let heard_again = Duration::from_millis(PROBER_SILENCE_MS_MAX).min(shared.settings.scan_interval);
    let mut backoff = Backoff::default();
    loop {
        let leaving = shared.views().leaving.clone();
        let (mut has_failed, mut is_heard) = (false, false);
        for name in leaving {
            match leave(shared, client, &name).await {
                Attempt::Done => {
                    shared.views().leaving.remove(&name);
                }
                Attempt::Heard => is_heard = true,
                Attempt::Failed => has_failed = true,
            }
        }
        if has_failed {
            backoff.wait().await;
            continue;
        }
        backoff.reset();
        tokio::select! {
            () = shared.wake.leaving.notified() => {}
            () = tokio::time::sleep(heard_again), if is_heard => {}
        }
    }
}

async fn leave(shared: &Shared<impl Servers>, client: &Client, name: &ObjectName) -> Attempt {
    // A node may have returned since, under another uid.
    match read(client, &resource("", "Node", "nodes"), None, name.as_str()).await {
        Ok(Presence::Missing) => {}
        Ok(Presence::Uids(_)) => return Attempt::Done,
        Err(error) => {
            shared.failed(&error);
            return Attempt::Failed;
        }
    }
    match reclaim(shared, name).await {
        Ok(reclaimed) => {
            shared.note(|status| status.reclaimed += reclaimed);
            Attempt::Done
        }
        Err(problem) if problem.code == Code::InUse => Attempt::Heard,
        Err(problem) => {
            shared.refused(&problem);
            if is_passing(&problem) { Attempt::Failed } else { Attempt::Done }
        }
    }
}

/// Returns the number of released addresses.
async fn reclaim(shared: &Shared<impl Servers>, name: &ObjectName) -> Result<u64, Problem> {
    let own = |what| path(&["nodes", shared.settings.realm.as_str(), name.as_str(), what]);
    let mut ids: Vec<u64> = Vec::new();
    each(&shared.servers, &own("attachments"), |one: NodeAttachment| ids.extend(one.allocations)).await?;
    ids.sort_unstable();
    ids.dedup();
    let mut reclaimed = 0;
    for chunk in ids.chunks(RECLAIM_LINES_MAX) {
        let request = ReclaimRequest { reason: ReclaimReason::NodeGone, allocations: chunk.to_vec() };
        let call = Call::post(own("reclaim")).json(&request)?.repeatable();
        reclaimed += shared.servers.send(call).await?.read::<Reclaimed>()?.addresses.len() as u64;
    }
    Ok(reclaimed)
}
