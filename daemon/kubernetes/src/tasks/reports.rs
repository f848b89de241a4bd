//! Reports about pods on their way to the servers, and their comparison with what the servers have.

use std::collections::BTreeSet;
use std::time::Duration;

use ipam_api::Problem;
use ipam_api::client::{Call, with_query};
use ipam_api::limits::{PODS_PER_REPORT_MAX, VERIFIED_RENEWAL_MS};
use ipam_api::pod::{PodsReport, PodsReported};
use ipam_api::time::Timestamp;
use tokio::time::{Instant, timeout};

use crate::absent::Absent;
use crate::backoff::Backoff;
use crate::pods::{Batch, Uid};
use crate::rows::ReportedRow;
use crate::servers::{Servers, each, is_passing, path};
use crate::shared::Shared;

/// Time between two reports without news, which renew the verification.
const RENEWAL: Duration = Duration::from_millis(VERIFIED_RENEWAL_MS);
/// Pause while a report waits for the controllers above the owner of a pod.
const OWNER_PAUSE: Duration = Duration::from_millis(200);

/// Number of waiting reports above which the list of pods pauses.
const WAITING_MAX: usize = 2 * PODS_PER_REPORT_MAX;
/// Longest pause of the list.
const ROOM_WAIT: Duration = Duration::from_secs(1);

/// Reports new, changed and deleted pods, for as long as the watcher runs.
pub(crate) async fn report_pods(shared: &Shared<impl Servers>) {
    let mut backoff = Backoff::default();
    let mut renewed: Option<Instant> = None;
    loop {
        let now = Instant::now();
        let Some((batch, is_complete)) = take(shared, now) else {
            shared.wake.reports.notified().await;
            continue;
        };
        let due_in = match (is_complete, renewed) {
            (false, _) => RENEWAL,
            (true, Some(at)) => (at + RENEWAL).saturating_duration_since(now),
            (true, None) => Duration::ZERO,
        };
        if batch.is_empty() && !due_in.is_zero() {
            let is_waiting = shared.views().pods.reports.waiting() > 0;
            let pause = if is_waiting { OWNER_PAUSE } else { due_in };
            let _ = timeout(pause, shared.wake.reports.notified()).await;
            continue;
        }
        match send(shared, &batch, is_complete).await {
            Ok(_) => {
                backoff.reset();
                renewed = is_complete.then_some(now).or(renewed);
                shared.views().pods.reports.accepted(batch, is_complete);
                shared.reported.notify_one();
            }
            Err(problem) => {
                shared.refused(&problem);
                {
                    let reports = &mut shared.views().pods.reports;
                    match is_passing(&problem) {
                        true => reports.postponed(batch, now),
                        false => reports.is_refused = true,
                    }
                }
                backoff.wait().await;
            }
        }
    }
}

/// Reports for one request, and whether all are reported with it. None before the controllers are listed.
fn take(shared: &Shared<impl Servers>, now: Instant) -> Option<(Batch, bool)> {
    let may_verify = shared.may_verify(Timestamp::now());
    let views = &mut *shared.views();
    if !views.controllers.are_built_in_synced() {
        return None;
    }
    let may_verify = may_verify && views.pods.is_synced();
    let controllers = &views.controllers;
    let above = |namespace: &_, owner: &_| controllers.above(namespace, owner);
    let batch = views.pods.reports.batch(now, above);
    let is_complete = may_verify && views.pods.reports.is_complete_with(&batch);
    Some((batch, is_complete))
}

/// Pauses while many reports wait, so that a list of all pods is not in memory as a whole. The servers may be
/// unavailable, so the pause is short and occurs once per request's worth of reports.
pub(super) async fn room_for_reports(shared: &Shared<impl Servers>) {
    let waiting = shared.views().pods.reports.waiting();
    if waiting >= WAITING_MAX && waiting.is_multiple_of(PODS_PER_REPORT_MAX) {
        shared.wake.reports.notify_one();
        let _ = timeout(ROOM_WAIT, shared.reported.notified()).await;
    }
}

async fn send(shared: &Shared<impl Servers>, batch: &Batch, complete: bool) -> Result<PodsReported, Problem> {
    let realm = shared.settings.realm.clone();
    let report = PodsReport { realm, pods: batch.pods.clone(), gone: batch.gone.clone(), complete };
    shared.servers.send(Call::post("/v1/pods").json(&report)?.repeatable()).await?.read()
}

/// Looks for pods that only the servers have, and removes them. Returns true if the servers have lost
/// reports: the watcher has to list the pods again.
pub(crate) async fn compare_reports(
    shared: &Shared<impl Servers>,
    absent: &mut Absent<String>,
) -> Result<bool, Problem> {
    let reported: Vec<Uid> = shared.views().pods.reports.reported().cloned().collect();
    let list = with_query(&path(&["pods"]), "realm", shared.settings.realm.as_str());
    let (mut listed, mut surplus) = (BTreeSet::new(), BTreeSet::new());
    each(&shared.servers, &with_query(&list, "fields", "pod.uid"), |row: ReportedRow| {
        let uid = row.uid();
        listed.insert(Uid::new(&uid));
        if !shared.settings.verify || !shared.views().pods.uids.contains(&uid) {
            surplus.insert(uid);
        }
    })
    .await?;
    let due = match shared.settings.verify {
        true => absent.scan(surplus, Instant::now(), shared.settings.scan_interval),
        false => surplus.into_iter().collect(),
    };
    let reports = &mut shared.views().pods.reports;
    for uid in due {
        absent.forget(&uid);
        reports.remove(&uid);
    }
    shared.wake.reports.notify_one();
    Ok(reported.iter().any(|uid| reports.is_reported(uid) && !listed.contains(uid)))
}
