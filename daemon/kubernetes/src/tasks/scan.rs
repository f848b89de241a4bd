//! Scans: the endpoints and pools of the servers, compared with the view.

use std::collections::{BTreeMap, BTreeSet};

use ipam_api::Problem;
use ipam_api::client::with_query;
use ipam_api::limits::KUBERNETES_CONFIRMS_PER_SCAN_MAX;
use ipam_api::resource::{EndpointKey, EndpointKind};
use ipam_api::time::Timestamp;
use ipam_api::workload::{WorkloadGone, WorkloadName};
use kube::Client;
use tokio::time::Instant;

use super::confirm::{Candidate, confirm, is_gone};
use super::reports::compare_reports;
use crate::absent::Absent;
use crate::backoff::Backoff;
use crate::connection::Kinds;
use crate::controllers::{Assessment, ControllerId, Known, Work};
use crate::rows::{EndpointRow, PoolRow};
use crate::servers::{Servers, each, path};
use crate::shared::Shared;

/// Findings of one scan.
#[derive(Debug, Default)]
struct Found {
    pods: BTreeSet<Candidate>,
    controllers: BTreeMap<ControllerId, Known>,
}

/// Compares the servers with the view at each interval. Ends if the view has to be built again.
pub(crate) async fn scan(shared: &Shared<impl Servers>, client: &Client) {
    shared.synced().await;
    let (mut pods, mut controllers) = (Absent::default(), Absent::default());
    let mut reports = Absent::default();
    let mut backoff = Backoff::default();
    loop {
        // A persistent error is recorded again.
        shared.note(|status| status.error = None);
        match find(shared).await {
            Ok(found) => {
                backoff.reset();
                of_pods(shared, client, &mut pods, found.pods).await;
                of_controllers(shared, client, &mut controllers, found.controllers).await;
                match compare_reports(shared, &mut reports).await {
                    Ok(false) => {}
                    Ok(true) => return,
                    Err(problem) => shared.refused(&problem),
                }
                shared.note(|status| {
                    status.scans += 1;
                    status.absent = pods.len() as u64;
                });
                tokio::select! {
                    () = tokio::time::sleep(shared.settings.scan_interval) => {}
                    () = shared.wake.scan.notified() => {}
                }
            }
            Err(problem) => {
                shared.refused(&problem);
                backoff.wait().await;
            }
        }
    }
}

/// Reads the endpoints and pools of the realm.
async fn find(shared: &Shared<impl Servers>) -> Result<Found, Problem> {
    let mut found = Found::default();
    let realm = &shared.settings.realm;
    let endpoints = with_query(&path(&["endpoints"]), "realm", realm.as_str());
    each(&shared.servers, &endpoints, |row: EndpointRow| found.endpoint(shared, row)).await?;
    each(&shared.servers, &path(&["pools"]), |row: PoolRow| {
        if let Some(application) = row.present_in(realm) {
            let id = ControllerId::new(application.namespace, application.controller);
            found.controllers.entry(id).or_default().replicas.push(application.replicas);
        }
    })
    .await?;
    Ok(found)
}

impl Found {
    fn endpoint(&mut self, shared: &Shared<impl Servers>, row: EndpointRow) {
        let EndpointRow { key: EndpointKey { kind, namespace, name, .. }, uid, controller } = row;
        let is_pod = matches!(kind, EndpointKind::Pod | EndpointKind::Vm);
        let has_pod = uid.as_ref().is_some_and(|uid| {
            let views = shared.views();
            views.pods.uids.contains(uid) || views.pods.queue.is_gone(uid)
        });
        if let Some(controller) = controller {
            let id = ControllerId::new(namespace.clone(), controller);
            let known = self.controllers.entry(id).or_default();
            known.has_pod |= has_pod;
            known.endpoints.push(name.clone());
        }
        if let Some(uid) = uid.filter(|_| is_pod && !has_pod) {
            self.pods.insert(Candidate { endpoint: WorkloadName { kind, namespace, name }, uid });
        }
    }
}

async fn of_pods(
    shared: &Shared<impl Servers>,
    client: &Client,
    absent: &mut Absent<Candidate>,
    found: BTreeSet<Candidate>,
) {
    let mut due = absent.scan(found, Instant::now(), shared.settings.scan_interval);
    due.truncate(KUBERNETES_CONFIRMS_PER_SCAN_MAX);
    for (candidate, is_gone) in confirm(shared, client, due).await {
        absent.forget(&candidate);
        if is_gone {
            let queue = &mut shared.views().pods.queue;
            queue.put(candidate.facts(), WorkloadGone::Absent, Timestamp::now());
        } else {
            shared.note(|status| status.refuted += 1);
        }
    }
    shared.wake.pods.notify_one();
    shared.publish();
}

async fn of_controllers(
    shared: &Shared<impl Servers>,
    client: &Client,
    absent: &mut Absent<ControllerId>,
    found: BTreeMap<ControllerId, Known>,
) {
    let mut missing = BTreeSet::new();
    for (id, known) in found {
        let mut views = shared.views();
        match known.assess(&id, &views.controllers) {
            Assessment::Fine => {}
            Assessment::Scale(kind, ..) => {
                let work = Work::Scaled(kind, id.namespace, id.name);
                views.controllers.work.insert(work);
            }
            Assessment::Absent => {
                missing.insert(id);
            }
        }
    }
    let due = absent.scan(missing, Instant::now(), shared.settings.scan_interval);
    let mut kinds = Kinds::default();
    for id in due.into_iter().take(KUBERNETES_CONFIRMS_PER_SCAN_MAX) {
        match is_gone(client, &mut kinds, &id).await {
            Ok(is_gone) => {
                absent.forget(&id);
                if is_gone {
                    shared.views().controllers.work.insert(Work::Gone(id));
                }
            }
            Err(error) => shared.failed(&error),
        }
    }
    shared.wake.controllers.notify_one();
}
