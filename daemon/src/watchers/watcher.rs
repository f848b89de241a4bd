//! Watcher of a section `[[kubernetes]]` in the leader.

use std::time::Duration;

use axum::Router;
use ipam_api::access::Role;
use ipam_api::reclaim::Task;
use ipam_kubernetes::{Settings, Status, watch};
use ipam_machine::Grant;
use tokio::sync::watch::channel;

use super::member::{Member, publish};
use super::news::News;
use crate::config::KubernetesSettings;
use crate::tasks::Statuses;

const PURPOSE: &str = "Mirrors nodes and namespaces of a Kubernetes cluster, and reports what is gone in it.";

/// Runs one watcher, and publishes its status.
pub(super) async fn run(section: &KubernetesSettings, router: &Router, leadership: u64, statuses: &Statuses) {
    let KubernetesSettings { realm, kubeconfig, context, scan_interval_ms, verify, custom_resources } =
        section.clone();
    let name = format!("kubernetes/{realm}");
    // All realms share the pools, subnets and reservations that custom resources describe.
    let grant =
        Grant { realms: vec![realm.clone()], allow_shared: custom_resources, ..Grant::of(Role::Admin) };
    let servers = Member::new(router, &name, grant, leadership);
    let scan_interval = Duration::from_millis(scan_interval_ms);
    let settings = Settings {
        kubeconfig,
        context,
        scan_interval,
        verify,
        custom_resources,
        ..Settings::new(realm.clone())
    };
    let (status, news) = channel(Status::new());
    let shown = |status: &Status, errors| shown(&name, scan_interval_ms, status, errors);
    tokio::join!(watch(settings, servers, status), publish(News::new(realm, news), statuses, shown));
}

/// Status as a task: a scan is a run, and the last success is the sign of life of the watches.
fn shown(name: &str, interval_ms: u64, status: &Status, errors: u64) -> Task {
    let heard = ["pods", "nodes"].into_iter().filter_map(|plural| status.heard.get(plural).copied());
    Task {
        name: name.to_owned(),
        purpose: PURPOSE.to_owned(),
        interval_ms,
        runs: status.scans,
        failures: errors,
        reclaimed: status.reclaimed,
        started_at: Some(status.since),
        succeeded_at: status.synced.then(|| heard.min().unwrap_or(status.since)),
        duration_us: None,
    }
}
