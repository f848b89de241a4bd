//! Provider of a section `[[cluster_api]]` in the leader.

use axum::Router;
use ipam_api::access::Role;
use ipam_api::reclaim::Task;
use ipam_kubernetes::{ProviderSettings, ProviderStatus, provide};
use ipam_machine::Grant;
use tokio::sync::watch::channel;

use super::member::{Member, publish};
use super::news::News;
use crate::config::ClusterApiSettings;
use crate::tasks::Statuses;

const PURPOSE: &str = "Serves the IPAddressClaims of a management cluster of Cluster API with addresses.";

/// Names of the tasks, with a number where several sections have one realm.
pub(super) fn names(sections: &[ClusterApiSettings]) -> Vec<String> {
    let of_realm = |section: &ClusterApiSettings| {
        let realm = section.realm.clone();
        sections.iter().filter(move |other| other.realm == realm)
    };
    let name = |section: &ClusterApiSettings| {
        let before = of_realm(section).take_while(|other| !std::ptr::eq(*other, section)).count();
        match of_realm(section).count() {
            1 => principal(section),
            _ => format!("{}/{}", principal(section), before + 1),
        }
    };
    sections.iter().map(name).collect()
}

/// Principal of the requests, which all providers of a realm share.
fn principal(section: &ClusterApiSettings) -> String {
    format!("cluster-api/{}", section.realm)
}

/// Runs one provider, and publishes its status under a name.
pub(super) async fn run(
    name: &str,
    section: &ClusterApiSettings,
    router: &Router,
    leadership: u64,
    statuses: &Statuses,
) {
    let ClusterApiSettings { realm, kubeconfig, context, network_per_namespace, watch_filter } =
        section.clone();
    // All realms share the pools, subnets and networks that a provider creates.
    let grant = Grant { realms: vec![realm.clone()], allow_shared: true, ..Grant::of(Role::Admin) };
    let servers = Member::new(router, &principal(section), grant, leadership);
    let settings = ProviderSettings {
        kubeconfig,
        context,
        network_per_namespace,
        watch_filter,
        ..ProviderSettings::new(realm.clone())
    };
    let interval_ms = u64::try_from(settings.compare_interval.as_millis()).unwrap_or(u64::MAX);
    let (status, news) = channel(ProviderStatus::new());
    let shown = |status: &ProviderStatus, errors| shown(name, interval_ms, status, errors);
    tokio::join!(provide(settings, servers, status), publish(News::new(realm, news), statuses, shown));
}

/// Status as a task. A comparison is a run; the last success is the last sign of life of the claims watch.
fn shown(name: &str, interval_ms: u64, status: &ProviderStatus, errors: u64) -> Task {
    Task {
        name: name.to_owned(),
        purpose: PURPOSE.to_owned(),
        interval_ms,
        runs: status.compared,
        failures: errors,
        reclaimed: 0,
        started_at: Some(status.since),
        succeeded_at: status.synced.then(|| status.heard.unwrap_or(status.since)),
        duration_us: None,
    }
}

#[cfg(test)]
mod tests {
    use ipam_api::name::Name;
    use ipam_api::time::Timestamp;

    use super::*;

    fn section(realm: &str) -> ClusterApiSettings {
        ClusterApiSettings {
            realm: Name::new(realm).unwrap(),
            kubeconfig: None,
            context: None,
            network_per_namespace: false,
            watch_filter: None,
        }
    }

    #[test]
    fn sections_of_one_realm_have_numbers() {
        let sections = ["eu", "us", "eu", "eu"].map(section);
        let expected = ["cluster-api/eu/1", "cluster-api/us", "cluster-api/eu/2", "cluster-api/eu/3"];
        assert_eq!(names(&sections), expected);
        assert_eq!(principal(&sections[2]), "cluster-api/eu");
    }

    #[test]
    fn a_provider_succeeds_while_it_hears_of_claims() {
        let mut status = ProviderStatus { compared: 3, ..ProviderStatus::new() };
        let task = shown("cluster-api/eu", 600_000, &status, 2);
        assert_eq!((task.runs, task.failures, task.succeeded_at), (3, 2, None));
        assert_eq!(task.started_at, Some(status.since));
        status.synced = true;
        assert_eq!(shown("x", 1, &status, 0).succeeded_at, Some(status.since));
        let heard = Timestamp::now();
        status.heard = Some(heard);
        assert_eq!(shown("x", 1, &status, 0).succeeded_at, Some(heard));
    }
}
