//! Facts about pods on their way to the servers.

use std::time::Duration;

use ipam_api::Problem;
use ipam_api::client::Call;
use ipam_api::time::Timestamp;
use ipam_api::workload::{Workload, WorkloadsAnswer, WorkloadsRequest};

use crate::backoff::Backoff;
use crate::servers::Servers;
use crate::shared::Shared;

/// Pause while facts are due, and the watches give no sign of life.
const SILENT: Duration = Duration::from_secs(1);

/// Sends facts that are due, for as long as the watcher runs.
pub(crate) async fn send_facts(shared: &Shared<impl Servers>) {
    shared.synced().await;
    let mut backoff = Backoff::default();
    loop {
        let now = Timestamp::now();
        let (batch, next_due) = {
            let views = shared.views();
            let batch = views.pods.queue.batch(now, shared.alive_at(now), |name| views.node_state(name));
            (batch, views.pods.queue.next_due())
        };
        if batch.is_empty() {
            let pause = next_due.map(|due| Duration::from_millis(due.0.saturating_sub(now.0)).max(SILENT));
            tokio::select! {
                () = shared.wake.pods.notified() => {}
                () = tokio::time::sleep(pause.unwrap_or(Duration::MAX)) => {}
            }
            continue;
        }
        match send(shared, &batch).await {
            Ok(answer) => {
                backoff.reset();
                note(shared, &batch, &answer);
            }
            Err(problem) => {
                shared.refused(&problem);
                backoff.wait().await;
            }
        }
    }
}

async fn send(shared: &Shared<impl Servers>, batch: &[Workload]) -> Result<WorkloadsAnswer, Problem> {
    let request = WorkloadsRequest { realm: shared.settings.realm.clone(), workloads: batch.to_vec() };
    shared.servers.send(Call::post("/v1/workloads").json(&request)?.repeatable()).await?.read()
}

fn note(shared: &Shared<impl Servers>, batch: &[Workload], answer: &WorkloadsAnswer) {
    let now = Timestamp::now();
    let scan_ms = u64::try_from(shared.settings.scan_interval.as_millis()).unwrap_or(u64::MAX);
    let mut reclaimed = 0;
    {
        let queue = &mut shared.views().pods.queue;
        for (sent, result) in
            batch.iter().zip(&answer.results).filter(|(sent, result)| sent.uid == result.uid)
        {
            queue.answered(sent, result, now, scan_ms);
            reclaimed += result.addresses.len() as u64;
        }
    }
    shared.note(|status| {
        status.reclaimed += reclaimed;
    });
    shared.publish();
}
